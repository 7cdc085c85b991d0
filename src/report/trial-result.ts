/** The result of one attempt at a task. */
export interface TrialResult {
  readonly task: string;
  /** The attempt's number at its task. */
  readonly trial: number;
  readonly reward: number;
}

/**
 * True if a reward is a success: 1 within 1e-6.
 * **Source:** sierra-research/tau-bench, tau_bench/run.py (`is_successful`).
 */
export function isSuccess(reward: number): boolean {
  return reward >= 1 - 1e-6 && reward <= 1 + 1e-6;
}
