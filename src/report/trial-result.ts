/** What one attempt at a task came to. */
export interface TrialResult {
  readonly task: string;
  /** Tells the attempts at a task apart. */
  readonly trial: number;
  readonly reward: number;
}

/**
 * Whether a reward counts as success: 1, give or take a millionth.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/run.py (`is_successful`).
 */
export function isSuccess(reward: number): boolean {
  return reward >= 1 - 1e-6 && reward <= 1 + 1e-6;
}
