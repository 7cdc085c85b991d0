/**
 * True if the value can be a reward: a number that is finite in 32 bits, as trainers store it. Larger numbers would
 * make means and advantages infinite or NaN.
 */
export function isReward(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}
