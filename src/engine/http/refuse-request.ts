import type { FailedReply } from "./piece-reply.ts";
import type { PieceRequest } from "./piece-request.ts";
import { show } from "./reply-reading.ts";

/** The temperature below which sampling is greedy. */
const greedyTemperature = 1e-5;

/** Returns the failure of a request that the server cannot fulfil. Nothing was sent. */
export function refuseRequest(problem: string, expected: string): FailedReply {
  const refusal = { code: "engine/bad-request", retry: false, maySample: false } as const;
  return { type: "failed", failure: { ...refusal, problem, expected } };
}

/**
 * Returns a refusal of a request for kept tokens whose sampling bounds no set. The servers refuse such a request, too,
 * vLLM by HTTP 500 without a message.
 */
export function refuseKeptTokens(
  { turn: { columns, sampling } }: PieceRequest,
  { allowsGreedy }: { readonly allowsGreedy: boolean },
): FailedReply | undefined {
  const kept = columns?.specs.keptTokens;
  if (kept === undefined) return undefined;
  const { temperature = 1, topK = -1, extra = {} } = sampling;
  if (temperature < greedyTemperature) {
    if (allowsGreedy) return undefined;
    return refuseRequest(`kept tokens at the temperature ${temperature}`, "a temperature above 0");
  }
  const bound = extra["top_k"] ?? topK;
  if (typeof bound === "number" && bound >= 1 && bound <= kept.maxCount) return undefined;
  return refuseRequest(
    `kept tokens with a topK of ${show(bound)}`,
    `1 to ${kept.maxCount}, the keptTokens of the run's columns`,
  );
}
