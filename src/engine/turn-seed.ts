import type { SamplingParameters } from "./engine.ts";

/** Seeds that an engine is asked with are below it. */
const seedCount = 2 ** 31;

/** Which turn is seeded. */
interface SeededTurn {
  /** The episode's or session's own seed. */
  readonly seed: number;
  readonly turnIndex: number;
}

/**
 * How a turn is sampled: with a seed of its own, where there is one for the run. Seeds may be as large as a
 * number can say exactly; episodes whose seeds follow one another have turns whose seeds differ.
 */
export function samplingOfTurn(
  sampling: SamplingParameters,
  { seed, turnIndex }: SeededTurn,
): SamplingParameters {
  if (sampling.seed === undefined) return sampling;
  // Reduced first: a product beyond 2⁵³ has lost the digits in which episodes differ.
  const ofRun = sampling.seed % seedCount;
  const ofEpisode = (seed % seedCount) * 1009;
  return { ...sampling, seed: (ofRun + ofEpisode + turnIndex) % seedCount };
}
