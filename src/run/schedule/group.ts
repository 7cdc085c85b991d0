import type { Episode } from "../../episode/episode.ts";
import type { Task } from "../../task.ts";

/** The attempts at one task that are compared with each other. */
export interface EpisodeGroup {
  readonly groupId: string;
  /** 0-based place within the run. */
  readonly groupIndex: number;
  readonly task: Task;
  /** By their place within the group; one that failed for good has no reward. */
  readonly episodes: readonly Episode[];
  /**
   * How many versions of the policy came after the one that sampled the oldest of the group's tokens;
   * absent where the version of any of them is not known.
   */
  readonly staleness?: number;
}

/** The rewards of a group; absent where nothing scored an attempt. */
export function rewardsOf({ episodes }: EpisodeGroup): readonly (number | undefined)[] {
  return episodes.map(({ reward }) => reward);
}

/** Whether a group teaches anything: two of its rewards differ by more than `least`. */
export function rewardSpread(least = 0): (group: EpisodeGroup) => boolean {
  return (group) => {
    const scored = rewardsOf(group).filter((reward) => reward !== undefined);
    return scored.length > 1 && Math.max(...scored) - Math.min(...scored) > least;
  };
}
