import type { SamplingParameters } from "./engine.ts";

/** The seeds that engines receive are below this number. */
const seedCount = 2 ** 31;

/** The turn that a seed is made for. */
interface SeededTurn {
  /** The episode's or session's own seed. */
  readonly seed: number;
  readonly turnIndex: number;
}

/**
 * Returns the sampling parameters of one turn. If the run has a seed, each turn gets a seed of its own. Seeds can be
 * any safe integer. Turns of episodes with consecutive seeds get different seeds.
 */
export function samplingOfTurn(
  sampling: SamplingParameters,
  { seed, turnIndex }: SeededTurn,
): SamplingParameters {
  if (sampling.seed === undefined) return sampling;
  // Reduced first: a product above 2⁵³ loses the digits in which episodes differ.
  const ofRun = sampling.seed % seedCount;
  const ofEpisode = (seed % seedCount) * 1009;
  return { ...sampling, seed: (ofRun + ofEpisode + turnIndex) % seedCount };
}
