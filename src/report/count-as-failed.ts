import type { Evaluation } from "./evaluation.ts";

/** The figures of a run in which every attempt that has no score failed, also one that was not played. */
interface CountedAsFailed {
  /** Share of the planned attempts that succeeded: pass^1, as each task has as many. */
  readonly successShare: number;
  /** Over the planned attempts. */
  readonly averageReward: number;
}

/**
 * Counts attempts without a score as failed. Returns `undefined` if tasks have different numbers of
 * attempts, or if no attempt has ended.
 */
export function countAsFailed({
  episodes: { planned },
  tasks,
  tauBench,
  trialCount,
}: Pick<Evaluation, "episodes" | "tasks" | "tauBench" | "trialCount">):
  | CountedAsFailed
  | undefined {
  if (tauBench === undefined || planned !== tasks.length * trialCount) return undefined;
  let successCount = 0;
  let rewardSum = 0;
  for (const task of tasks) {
    successCount += task.successCount;
    for (const { reward = 0 } of task.trials) rewardSum += reward;
  }
  return { successShare: successCount / planned, averageReward: rewardSum / planned };
}
