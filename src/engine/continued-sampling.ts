import type { SamplingParameters } from "./engine.ts";

/** 2³¹ by the golden ratio, odd: multiples of it stay as far apart as they can. */
const seedStep = 1_327_217_885;

/**
 * How a turn is sampled on behind the ids that it has already. With the seed of its beginning, an engine that
 * makes its random numbers anew for each request, as vLLM and llama.cpp do, would draw the same ones once
 * more. Where nothing was sampled yet, it is as it was asked for. The seed follows from how many ids there
 * are, and so is the same whoever interrupted the turn, and how often.
 */
export function samplingBehind(
  sampling: SamplingParameters,
  sampledCount: number,
): SamplingParameters {
  const { seed } = sampling;
  if (seed === undefined || sampledCount === 0) return sampling;
  return { ...sampling, seed: seedBehind(seed, sampledCount) };
}

/** The seed with which a turn is sampled on behind so many ids. */
export function seedBehind(seed: number, sampledCount: number): number {
  return ((seed % 2 ** 31) + sampledCount * seedStep) % 2 ** 31;
}
