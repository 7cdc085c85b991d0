import type { Episode } from "../../episode/episode.ts";
import { estimateWith, type AdvantageEstimator } from "./advantages.ts";
import { rewardsOf, type EpisodeGroup } from "./group.ts";

/** Options of `turnAdvantages()`. */
export interface TurnAdvantageOptions {
  /** The weight of a reward one turn later, from 0 to 1. Default 1. */
  readonly discount?: number;
}

/**
 * Returns the advantages of the turns of a group's attempts: one list for each attempt, with an entry for each of its
 * `turns`. An attempt without a reward, or without enough others to compare it with, has no list.
 *
 * The return of a turn is its reward and the discounted rewards of the later turns. A turn's advantage compares this
 * return with the returns of the group's attempts from their first turns, as `estimator` compares rewards. The reward
 * of an attempt without `turnRewards` counts for its last turn in sampling order, so with discount 1 all of its turns
 * have the advantage that `advantages()` gives.
 *
 * **Source:** reward-to-go is the policy gradient of Sutton et al., Policy Gradient Methods for Reinforcement Learning
 * with Function Approximation, NeurIPS 1999; a baseline that does not depend on the action leaves it unbiased
 * (Williams, Machine Learning 8, 1992).
 * @throws TypeError if there is no such estimator or option, or if the discount is not from 0 to 1.
 */
export function turnAdvantages(
  group: EpisodeGroup,
  estimator: AdvantageEstimator,
  options: TurnAdvantageOptions = {},
): readonly (readonly number[] | undefined)[] {
  requireTurnAdvantages(estimator, options);
  const { discount = 1 } = options;
  const rewards = rewardsOf(group);
  const returns = group.episodes.map((episode, index) =>
    rewards[index] === undefined ? undefined : turnReturns(episode, discount),
  );
  const estimate = estimateWith(
    returns.map((own) => own?.[0]),
    estimator,
  );
  return returns.map((own) =>
    own === undefined || estimate === undefined
      ? undefined
      : own.map((value) => estimate(value, own[0]!)),
  );
}

/**
 * Checks the arguments of `turnAdvantages()`.
 *
 * @throws TypeError as `turnAdvantages()` does.
 */
export function requireTurnAdvantages(
  estimator: AdvantageEstimator,
  { discount = 1, ...others }: TurnAdvantageOptions,
): void {
  estimateWith([], estimator);
  for (const name of Object.keys(others)) {
    throw new TypeError(`Cannot compute advantages: there is no option ${name}, expected discount`);
  }
  if (discount >= 0 && discount <= 1) return;
  throw new TypeError(
    `Cannot compute advantages: the discount is ${discount}, expected a number from 0 to 1`,
  );
}

/**
 * Returns each turn's reward and the discounted rewards of the turns sampled after it, by the turn's
 * index in the episode. `turns` lists an agent's turns row by row, and `tree` has their order.
 */
export function turnReturns(
  {
    reward = 0,
    turnRewards,
    turns,
    tree,
  }: Pick<Episode, "reward" | "turnRewards" | "turns" | "tree">,
  discount: number,
): readonly number[] {
  const order = tree?.flatMap(({ turnIndex }) => turnIndex ?? []) ?? [...turns.keys()];
  const last = order.at(-1);
  const rewards = turnRewards ?? turns.map((_, index) => (index === last ? reward : 0));
  const returns = rewards.map(() => 0);
  let later = 0;
  for (const index of order.toReversed()) {
    later = (rewards[index] ?? 0) + discount * later;
    returns[index] = later;
  }
  return returns;
}
