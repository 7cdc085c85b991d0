import type { EpisodeRow } from "../run/folder/episode-row.ts";

/** The fields of an attempt that show from which attempt it branches. */
export type BranchPlace = Pick<EpisodeRow, "rolloutId" | "groupId" | "forkedFrom">;

/**
 * Returns the rollout ids of attempts that branch from another attempt of the same run. They share
 * turns with that attempt, so they are not independent samples of the policy. Forks of another
 * run's episode are independent samples.
 */
export function findBranches(attempts: readonly BranchPlace[]): ReadonlySet<string> {
  const ids = new Set(attempts.map(({ rolloutId }) => rolloutId));
  const branches = attempts.filter(({ groupId, forkedFrom }) => {
    if (forkedFrom === undefined) return false;
    // The first attempt's line may be missing.
    return ids.has(forkedFrom.rolloutId) || forkedFrom.rolloutId === `${groupId}#0`;
  });
  return new Set(branches.map(({ rolloutId }) => rolloutId));
}
