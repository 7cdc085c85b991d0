/** A published way to turn a group's rewards into advantages. */
export type AdvantageEstimator = "grpo" | "dr-grpo" | "rloo";

/** The constant that is added to GRPO's divisor, as in TRL and verl. */
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
 *
 * @param rewards - `undefined`, `null`, NaN and infinite numbers stand for attempts without a reward.
 * @throws TypeError if there is no such estimator.
 */
export function advantages(
  rewards: readonly (number | null | undefined)[],
  estimator: AdvantageEstimator,
): readonly (number | undefined)[] {
  const estimate = estimateWith(rewards, estimator);
  return rewards.map((reward) =>
    estimate !== undefined && isReward(reward) ? estimate(reward, reward) : undefined,
  );
}

/** Compares a return with the values of a group. `own` is the value of the same attempt among those of the group. */
type Estimate = (value: number, own: number) => number;

/**
 * Returns the estimator over the rewards of a group, or `undefined` if fewer than 2 attempts have one.
 *
 * @throws TypeError if there is no such estimator.
 */
export function estimateWith(
  rewards: readonly (number | null | undefined)[],
  estimator: AdvantageEstimator,
): Estimate | undefined {
  const ofReward = estimators[estimator] as Estimator | undefined;
  if (ofReward === undefined) {
    throw new TypeError(
      `Cannot compute advantages: the estimator is ${estimator}, expected one of ${Object.keys(estimators).join(", ")}`,
    );
  }
  const scored = rewards.filter(isReward);
  if (scored.length < 2) return undefined;
  const facts = factsOf(scored);
  return (value, own) => ofReward(value, facts, own);
}

/** True for a reward; false for an absent one, also if it is written as `null` or NaN, as in JSON and in tables. */
function isReward(value: number | null | undefined): value is number {
  return Number.isFinite(value);
}

/** Facts about the rewards of a group's scored attempts, of which there are at least 2. */
interface GroupFacts {
  readonly count: number;
  /** The first reward. Sums are those of differences to it, so that equal rewards have no rounding. */
  readonly first: number;
  /** The sum of the differences of all rewards to the first one. */
  readonly excess: number;
  readonly mean: number;
  /** The standard deviation of the sample (n − 1). */
  readonly deviation: number;
}

type Estimator = (value: number, facts: GroupFacts, own: number) => number;

const estimators: Readonly<Record<AdvantageEstimator, Estimator>> = {
  grpo: (value, { mean, deviation }) => (value - mean) / (deviation + epsilon),
  "dr-grpo": (value, { mean }) => value - mean,
  rloo: (value, { first, excess, count }, own) =>
    value - (first + (excess - (own - first)) / (count - 1)),
};

function factsOf(rewards: readonly number[]): GroupFacts {
  const count = rewards.length;
  const first = rewards[0]!;
  const excess = rewards.reduce((sum, reward) => sum + (reward - first), 0);
  const mean = first + excess / count;
  const squares = rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  return { count, first, excess, mean, deviation: Math.sqrt(squares / (count - 1)) };
}
