import { succeeded } from "../../report/trial-result.ts";

/** The members of a score that decide the success. */
interface Scored {
  readonly reward?: number | undefined;
  readonly success?: boolean | undefined;
}

/**
 * Returns whether a scored episode is a success: by the threshold, or else by its environment's verdict. Returns
 * `undefined` without a score, and if there is neither: then only the reward 1 is a success.
 *
 * @param threshold - The lowest reward of a success.
 */
export function ownSuccess({ reward, success }: Scored, threshold?: number): boolean | undefined {
  const isOwnRule = success !== undefined || threshold !== undefined;
  return reward === undefined || !isOwnRule ? undefined : succeeded({ reward, success }, threshold);
}
