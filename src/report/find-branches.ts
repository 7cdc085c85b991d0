import type { EpisodeRow } from "../run/episode-row.ts";
import type { RunManifest } from "../run/run-manifest.ts";

/** An attempt, as far as it says what it parts from. */
export type BranchPlace = Pick<EpisodeRow, "rolloutId" | "groupId" | "forkedFrom">;

/**
 * The attempts that part from another one of the same run, by their ids. What they share is not sampled twice, and
 * where they part follows from how the other one went on: they are no further draws from the policy, and say nothing of
 * its chances. Forks of one place of another run are: each is drawn from there on by itself.
 */
export function findBranches(
  attempts: readonly BranchPlace[],
  { configuration }: Pick<RunManifest, "configuration">,
): ReadonlySet<string> {
  // In runs of earlier versions an episode of its own may have the id of what a fork parts from.
  if (configuration["forkedFrom"] !== undefined) return new Set();
  const ids = new Set(attempts.map(({ rolloutId }) => rolloutId));
  const branches = attempts.filter(({ groupId, forkedFrom }) => {
    if (forkedFrom === undefined) return false;
    // The first attempt's own line may be lost.
    return ids.has(forkedFrom.rolloutId) || forkedFrom.rolloutId === `${groupId}#0`;
  });
  return new Set(branches.map(({ rolloutId }) => rolloutId));
}
