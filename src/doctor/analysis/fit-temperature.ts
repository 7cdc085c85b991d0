import { PairSums } from "./correlation.ts";

/** A constant factor between the two sides' logits. JSON-able. */
export interface TemperatureFit {
  /**
   * The factor: the trainer's logits are the engine's logits times this factor, which is the engine's temperature
   * divided by the trainer's.
   */
  readonly factor: number;
  /** Share of the mean absolute difference that the factor explains, at most 1. */
  readonly explained: number;
  /** Correlation of both sides' values, in the form to which the line was fitted. */
  readonly correlation: number;
}

/** A fit, with a function that removes its effect. */
export interface FoundTemperature extends TemperatureFit {
  /** Returns the trainer's logprob as it would be without the factor. */
  readonly corrected: (trainer: number) => number;
}

/** Logprobs above this have next to no log-odds: rounding decides them. */
const certain = -0.01;

/** The two forms in which a temperature is nearly a line. */
const forms = [
  // Many tokens are about equally probable: the sum over the vocabulary hardly changes from token to token.
  { to: (logprob: number) => logprob, from: (value: number) => Math.min(0, value) },
  // Two tokens share the probability: the log-odds are divided by the temperature exactly.
  {
    to: (logprob: number) => logprob - Math.log1p(-Math.exp(Math.min(logprob, -1e-9))),
    from: (value: number) => -Math.log1p(Math.exp(-value)),
  },
] as const;

/**
 * Fits a factor between the logits of both sides, from the logprobs of the sampled tokens alone.
 *
 * @returns `undefined` if there are too few tokens, or no difference.
 */
export function fitTemperature(
  engine: ArrayLike<number>,
  trainer: ArrayLike<number>,
): FoundTemperature | undefined {
  const fits = forms.flatMap((form) => fitForm(form, engine, trainer) ?? []);
  return fits.toSorted((one, other) => other.explained - one.explained)[0];
}

/** The smallest number of tokens to which a line is fitted. */
const leastTokens = 50;

function fitForm(
  { to, from }: (typeof forms)[number],
  engine: ArrayLike<number>,
  trainer: ArrayLike<number>,
): FoundTemperature | undefined {
  const sums = new PairSums();
  for (let index = 0; index < engine.length; index++) {
    if (engine[index]! > certain || trainer[index]! > certain) continue;
    sums.add(to(engine[index]!), to(trainer[index]!));
  }
  const { line } = sums;
  if (line === undefined || sums.count < leastTokens) return undefined;
  const corrected = (value: number): number =>
    value > certain ? value : from((to(value) - line.offset) / line.slope);
  let [whole, left] = [0, 0];
  for (let index = 0; index < engine.length; index++) {
    whole += Math.abs(trainer[index]! - engine[index]!);
    left += Math.abs(corrected(trainer[index]!) - engine[index]!);
  }
  if (whole === 0) return undefined;
  return {
    factor: line.slope,
    explained: 1 - left / whole,
    correlation: sums.correlation!,
    corrected,
  };
}
