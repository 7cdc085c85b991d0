import type { GenerateRequest, SamplingParameters } from "./engine.ts";
import { findOutputRule } from "./output-rule.ts";

/**
 * Returns the request for the rest of a turn after the ids that were already sampled.
 *
 * Returns the same request if no ids were sampled. Returns `undefined` if a rule applies to the
 * turn's complete output (`findOutputRule()`), because such a turn must be sampled again from its
 * start. The result's `maxNewTokens` can be 0.
 */
export function remainingRequest(
  request: GenerateRequest,
  sampledIds: readonly number[],
): GenerateRequest | undefined {
  const sampledCount = sampledIds.length;
  if (sampledCount === 0) return request;
  if (findOutputRule(request) !== undefined) return undefined;
  return {
    ...request,
    promptIds: [...request.promptIds, ...sampledIds],
    sampling: samplingAfter(request.sampling, sampledCount),
    maxNewTokens: request.maxNewTokens - sampledCount,
  };
}

/**
 * An odd number near 2³¹ divided by the golden ratio. Its multiples modulo 2³¹ are spread evenly.
 */
const seedStep = 1_327_217_885;

/** The names that SGLang and vLLM give to the least number of tokens before a stop counts. */
const minimumParameters = ["min_new_tokens", "min_tokens"];

/**
 * Returns the sampling parameters for the rest of a turn.
 *
 * vLLM and llama.cpp restart their random numbers for each request, so the first request's seed
 * would repeat the same draws. The new seed depends only on the number of ids, not on where the
 * turn was interrupted. A minimum number of tokens applies to the turn, so the tokens that were
 * already sampled count towards it.
 */
function samplingAfter(sampling: SamplingParameters, sampledCount: number): SamplingParameters {
  const { seed, extra } = sampling;
  return {
    ...sampling,
    ...(seed !== undefined && { seed: seedAfter(seed, sampledCount) }),
    ...(extra !== undefined && { extra: extraAfter(extra, sampledCount) }),
  };
}

function extraAfter(
  extra: NonNullable<SamplingParameters["extra"]>,
  sampledCount: number,
): NonNullable<SamplingParameters["extra"]> {
  const remaining = minimumParameters.flatMap((name) => {
    const minimum = extra[name];
    return typeof minimum === "number" ? [[name, Math.max(0, minimum - sampledCount)]] : [];
  });
  return { ...extra, ...(Object.fromEntries(remaining) as Record<string, number>) };
}

/** Returns the seed of a request that continues a turn after `sampledCount` ids. */
export function seedAfter(seed: number, sampledCount: number): number {
  return ((seed % 2 ** 31) + sampledCount * seedStep) % 2 ** 31;
}
