import { succeeded } from "../../report/trial-result.ts";

/** A score, as far as it decides the success. */
interface Scored {
  readonly reward?: number | undefined;
  readonly success?: boolean | undefined;
}

/**
 * Returns the verdict on a scored episode by the threshold, or else by its environment. `undefined` without a score, and
 * if neither decides: then only the reward 1 is a success.
 *
 * @param threshold - The lowest reward of a success.
 */
export function ownSuccess({ reward, success }: Scored, threshold?: number): boolean | undefined {
  const isOwnRule = success !== undefined || threshold !== undefined;
  return reward === undefined || !isOwnRule ? undefined : succeeded({ reward, success }, threshold);
}
