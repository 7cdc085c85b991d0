import type { EpisodeRow } from "../run/folder/episode-row.ts";

/** An attempt, as far as it says what it parts from. */
export type BranchPlace = Pick<EpisodeRow, "rolloutId" | "groupId" | "forkedFrom">;

/**
 * Returns the rollout ids of attempts that branch from another attempt of the same run. They share turns with that
 * attempt, so they are no independent draws from the policy. Forks of another run's episode are independent draws.
 */
export function findBranches(attempts: readonly BranchPlace[]): ReadonlySet<string> {
  const ids = new Set(attempts.map(({ rolloutId }) => rolloutId));
  const branches = attempts.filter(({ groupId, forkedFrom }) => {
    if (forkedFrom === undefined) return false;
    // The first attempt's own line may be lost.
    return ids.has(forkedFrom.rolloutId) || forkedFrom.rolloutId === `${groupId}#0`;
  });
  return new Set(branches.map(({ rolloutId }) => rolloutId));
}
