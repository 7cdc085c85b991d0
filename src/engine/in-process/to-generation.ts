import type { Finish, GenerateRequest, Generation } from "../engine.ts";

/** The tokens that were sampled of a turn. `logprobs[i]` belongs to `outputIds[i]`. */
export interface SampledTurn {
  readonly outputIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly finish: Finish;
  readonly cachedTokenCount: number;
}

/** Returns the generation of a turn that was sampled without interruption. */
export function toGeneration(
  { requestId, promptIds }: GenerateRequest,
  { outputIds, logprobs, finish, cachedTokenCount }: SampledTurn,
  policyVersion: string,
): Generation {
  const tokenCount = outputIds.length;
  return {
    outputIds,
    logprobs,
    finish,
    pieces: [{ requestId, tokenCount, policyVersion, finish: finish.type }],
    promptTokenCount: promptIds.length,
    cachedTokenCount,
    discarded: [],
  };
}
