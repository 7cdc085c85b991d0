import type { Episode } from "../../episode/episode.ts";
import type { Task } from "../../task.ts";

/** The attempts at one task that are compared with each other. */
export interface EpisodeGroup {
  readonly groupId: string;
  /** The group's index in the run, from 0. */
  readonly groupIndex: number;
  readonly task: Task;
  /** The episodes by sample index. A failed one has no reward. */
  readonly episodes: readonly Episode[];
  /**
   * The number of policy versions since the group's oldest token was sampled; absent if the version of a token is
   * unknown.
   */
  readonly staleness?: number;
}

/**
 * Returns the rewards of a group; `undefined` for an attempt that cannot train: without a reward, or without a sampled
 * token. So such an attempt does not change the baseline of the others.
 */
export function rewardsOf({ episodes }: EpisodeGroup): readonly (number | undefined)[] {
  return episodes.map(({ reward, counts }) =>
    counts.sampledTokenCount === 0 ? undefined : reward,
  );
}

/** Number of groups in a row without a spread after which a filter warns for the first time. */
const manyGroups = 32;

/**
 * Returns a filter for groups that can train: it returns true if two rewards differ by more than `least`. The filter
 * emits a Node.js warning if 32 groups in a row have no such rewards, and again each time that their number doubles.
 */
export function createSpreadFilter(least = 0): (group: EpisodeGroup) => boolean {
  let count = 0;
  let warnsAt = manyGroups;
  return (group) => {
    const scored = rewardsOf(group).filter((reward) => reward !== undefined);
    const hasSpread = scored.length > 1 && Math.max(...scored) - Math.min(...scored) > least;
    if (hasSpread) [count, warnsAt] = [0, manyGroups];
    else if (++count === warnsAt) {
      warnsAt *= 2;
      process.emitWarning(describeNoSpread(count, group, scored));
    }
    return hasSpread;
  };
}

function describeNoSpread(
  count: number,
  { groupId }: EpisodeGroup,
  scored: readonly number[],
): string {
  const last = scored.length === 0 ? "no attempt has a reward" : `rewards ${scored.join(", ")}`;
  return (
    `${count} groups in a row are left out because their rewards differ too little (the last one, ${groupId}: ${last}). ` +
    "Nothing can be trained until they do: choose easier or harder tasks, more samples, or a reward for partial success"
  );
}
