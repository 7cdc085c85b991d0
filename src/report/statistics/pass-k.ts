import { choose, divide } from "./binomial.ts";

/** The attempts and successes at one task. */
export interface TaskTally {
  readonly successCount: number;
  /** At least `k` for the functions below. */
  readonly trialCount: number;
}

/**
 * Estimates pass^k of one task: the probability that `k` attempts, drawn without replacement from
 * those made, all succeeded. Unbiased for the probability that `k` new attempts all succeed.
 *
 * **Source:** the estimator of the τ-bench paper, arXiv:2406.12045.
 */
export function passHatK({ successCount, trialCount }: TaskTally, k: number): number {
  return divide(choose(successCount, k), choose(trialCount, k));
}

/**
 * Estimates pass@k of one task: the probability that at least one of `k` attempts, drawn without
 * replacement from those made, succeeded. Unbiased for the probability that one of `k` new attempts
 * succeeds.
 *
 * **Source:** the estimator of Chen et al. 2021, arXiv:2107.03374.
 */
export function passAtK({ successCount, trialCount }: TaskTally, k: number): number {
  const all = choose(trialCount, k);
  return divide(all - choose(trialCount - successCount, k), all);
}
