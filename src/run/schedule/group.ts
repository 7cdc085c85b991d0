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
 * token. The reward of such an attempt must not change the baseline of the others.
 */
export function rewardsOf({ episodes }: EpisodeGroup): readonly (number | undefined)[] {
  return episodes.map(({ reward, counts }) =>
    counts.sampledTokenCount === 0 ? undefined : reward,
  );
}

/** Returns a filter for groups that can train: it returns true if two rewards differ by more than `least`. */
export function createSpreadFilter(least = 0): (group: EpisodeGroup) => boolean {
  return (group) => {
    const scored = rewardsOf(group).filter((reward) => reward !== undefined);
    return scored.length > 1 && Math.max(...scored) - Math.min(...scored) > least;
  };
}
