/** A published way to turn a group's rewards into advantages. */
export type AdvantageEstimator = "grpo" | "dr-grpo" | "rloo";

/** Added to GRPO's divisor, as in TRL and verl. */
const epsilon = 1e-6;

/**
 * Returns the advantages of a group's attempts. An attempt without a reward, or without enough others to compare it
 * with, has no advantage; never 0 instead.
 *
 * - `grpo`: distance from the group's mean in standard deviations (of the sample, n − 1). **Source:** Shao et al.,
 *   DeepSeekMath, arXiv:2402.03300, section 4.1.2.
 * - `dr-grpo`: distance from the group's mean. **Source:** Liu et al., Understanding R1-Zero-Like Training,
 *   arXiv:2503.20783, section 3.2.
 * - `rloo`: distance from the mean of the others. **Source:** Ahmadian et al., Back to Basics, arXiv:2402.14740,
 *   section 2.3; Kool et al. 2019.
 */
export function advantages(
  rewards: readonly (number | undefined)[],
  estimator: AdvantageEstimator,
): readonly (number | undefined)[] {
  const scored = rewards.filter((reward) => reward !== undefined);
  const count = scored.length;
  const total = scored.reduce((sum, reward) => sum + reward, 0);
  const mean = total / count;
  if (count < 2) return rewards.map(() => undefined);
  const squares = scored.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (count - 1));
  const of: Readonly<Record<AdvantageEstimator, (reward: number) => number>> = {
    grpo: (reward) => (reward - mean) / (deviation + epsilon),
    "dr-grpo": (reward) => reward - mean,
    rloo: (reward) => reward - (total - reward) / (count - 1),
  };
  return rewards.map((reward) => (reward === undefined ? undefined : of[estimator](reward)));
}
