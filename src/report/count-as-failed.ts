import type { Evaluation } from "./evaluation.ts";

/** The figures of a run if every planned attempt without a score counts as failed. */
interface CountedAsFailed {
  /**
   * Share of the planned attempts that succeeded. This is pass^1, because all tasks have the same
   * number of attempts.
   */
  readonly successShare: number;
  /** The mean reward over the planned attempts. An attempt without a score counts as 0. */
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
