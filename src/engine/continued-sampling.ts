import type { GenerateRequest, SamplingParameters } from "./engine.ts";
import { findWholeDemand } from "./whole-demand.ts";

/**
 * What is left to ask of a turn behind the ids that were sampled of it; all of it where none were. Nothing where the
 * request demands something of its whole output (`findWholeDemand()`): that turn can but be asked for anew. It may
 * be that no room is left, which whoever asks must look at.
 */
export function restBehind(
  request: GenerateRequest,
  sampledIds: readonly number[],
): GenerateRequest | undefined {
  const sampledCount = sampledIds.length;
  if (sampledCount === 0) return request;
  if (findWholeDemand(request) !== undefined) return undefined;
  return {
    ...request,
    promptIds: [...request.promptIds, ...sampledIds],
    sampling: samplingBehind(request.sampling, sampledCount),
    maxNewTokens: request.maxNewTokens - sampledCount,
  };
}

/** 2³¹ by the golden ratio, odd: multiples of it stay as far apart as they can. */
const seedStep = 1_327_217_885;

/** How many tokens must come before a stop counts, as SGLang and vLLM call it. */
const leastCounts = ["min_new_tokens", "min_tokens"];

/**
 * How a turn is sampled on behind the ids that it has already. With the seed of its beginning, an engine that
 * makes its random numbers anew for each request, as vLLM and llama.cpp do, would draw the same ones once
 * more. The seed follows from how many ids there are, and so is the same whoever interrupted the turn, and how
 * often. A least number of tokens is of the turn, and what was sampled of it counts.
 */
function samplingBehind(sampling: SamplingParameters, sampledCount: number): SamplingParameters {
  const { seed, extra } = sampling;
  return {
    ...sampling,
    ...(seed !== undefined && { seed: seedBehind(seed, sampledCount) }),
    ...(extra !== undefined && { extra: extraBehind(extra, sampledCount) }),
  };
}

function extraBehind(
  extra: NonNullable<SamplingParameters["extra"]>,
  sampledCount: number,
): NonNullable<SamplingParameters["extra"]> {
  const counts = leastCounts.flatMap((name) => {
    const least = extra[name];
    return typeof least === "number" ? [[name, Math.max(0, least - sampledCount)]] : [];
  });
  return { ...extra, ...(Object.fromEntries(counts) as Record<string, number>) };
}

/** The seed with which a turn is sampled on behind so many ids. */
export function seedBehind(seed: number, sampledCount: number): number {
  return ((seed % 2 ** 31) + sampledCount * seedStep) % 2 ** 31;
}
