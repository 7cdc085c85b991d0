/** The result of one attempt at a task. */
export interface TrialResult {
  readonly task: string;
  /** The attempt's number at its task. */
  readonly trial: number;
  readonly reward: number;
}

/**
 * True if a scored attempt is a success: by a threshold if one is given, else by the environment's own verdict, else
 * if its reward is 1.
 *
 * @param threshold - The lowest reward of a success.
 */
export function succeeded(
  { reward, success }: { readonly reward: number; readonly success?: boolean | undefined },
  threshold?: number,
): boolean {
  if (threshold !== undefined) return reward >= threshold - 1e-6;
  return success ?? isSuccess(reward);
}

/** True if an attempt of a report is a success. Its `success` is there if another rule than the reward 1 holds. */
export function isSuccessful({
  reward,
  success,
}: {
  readonly reward?: number | undefined;
  readonly success?: boolean | undefined;
}): boolean {
  return reward !== undefined && succeeded({ reward, success });
}

/**
 * True if a reward is a success by τ-bench's rule: 1 within 1e-6.
 * **Source:** sierra-research/tau-bench, tau_bench/run.py (`is_successful`).
 */
export function isSuccess(reward: number): boolean {
  return reward >= 1 - 1e-6 && reward <= 1 + 1e-6;
}
