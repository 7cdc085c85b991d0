import { passAtK, passHatK } from "./statistics/pass-k.ts";
import { isSuccess, type TrialResult } from "./trial-result.ts";

/** The figures of a run as τ-bench's own `display_metrics()` prints them, and pass@k. JSON-able. */
export interface TauBenchMetrics {
  readonly averageReward: number;
  /** pass^k by k, from 1 to the number of trials. */
  readonly passHatK: Readonly<Record<string, number>>;
  readonly passAtK: Readonly<Record<string, number>>;
}

/**
 * Computes τ-bench's figures with its two peculiarities. Each task counts as having as many trials
 * as the run has distinct trial numbers, so a missing trial counts as failed. A trial that occurs
 * twice counts twice, which can raise pass^k above 1.
 * **Source:** sierra-research/tau-bench, tau_bench/run.py (`display_metrics`); pass@k is our
 * addition.
 * @throws RangeError if there are no results.
 */
export function tauBenchMetrics(results: readonly TrialResult[]): TauBenchMetrics {
  if (results.length === 0) throw new RangeError("Cannot average the rewards of no results");
  const trialCount = new Set(results.map(({ trial }) => trial)).size;
  const successCounts = new Map<string, number>();
  let rewardSum = 0;
  for (const { task, reward } of results) {
    successCounts.set(task, (successCounts.get(task) ?? 0) + (isSuccess(reward) ? 1 : 0));
    rewardSum += reward;
  }
  const passHatKs: Record<string, number> = {};
  const passAtKs: Record<string, number> = {};
  for (let k = 1; k <= trialCount; k++) {
    let hatSum = 0;
    let atSum = 0;
    for (const successCount of successCounts.values()) {
      hatSum += passHatK({ successCount, trialCount }, k);
      atSum += passAtK({ successCount, trialCount }, k);
    }
    passHatKs[k] = hatSum / successCounts.size;
    passAtKs[k] = atSum / successCounts.size;
  }
  return { averageReward: rewardSum / results.length, passHatK: passHatKs, passAtK: passAtKs };
}

/**
 * Returns the number of (task, trial) pairs without a result, and the number of results in excess
 * of one per pair.
 */
export function countIrregular(results: readonly TrialResult[]): {
  readonly missingCount: number;
  readonly duplicateCount: number;
} {
  const pairs = new Set(results.map(({ task, trial }) => JSON.stringify([task, trial])));
  const taskCount = new Set(results.map(({ task }) => task)).size;
  const trialCount = new Set(results.map(({ trial }) => trial)).size;
  return {
    missingCount: taskCount * trialCount - pairs.size,
    duplicateCount: results.length - pairs.size,
  };
}
