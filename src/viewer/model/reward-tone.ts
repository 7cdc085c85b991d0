/** The colour of a reward: a success, none, or a part of one. */
type RewardTone = "good" | "bad" | "mixed";

/**
 * Returns the colour of a reward.
 *
 * @param scored.success - The verdict, if another rule than the reward decides.
 */
export function rewardTone({
  reward,
  success = reward >= 1,
}: {
  readonly reward: number;
  readonly success?: boolean | undefined;
}): RewardTone {
  if (success) return "good";
  return reward <= 0 ? "bad" : "mixed";
}
