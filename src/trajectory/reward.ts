/**
 * Whether a value can be a reward: a number that stays finite in 32 bits, in which trainers hold it. What
 * lies beyond makes means and advantages infinite, or no numbers at all.
 */
export function isReward(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}
