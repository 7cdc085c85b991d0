import { RequestRefused, badRequest, badShape } from "./error-replies.ts";
import type { VllmSequenceRequest } from "./request-decoding.ts";

type JsonObject = Readonly<Record<string, unknown>>;

const DEFAULTS: JsonObject = {
  n: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  repetition_penalty: 1,
  temperature: 1,
  top_p: 1,
  top_k: 0,
  min_p: 0,
  seed: null,
  stop: null,
  stop_token_ids: null,
  ignore_eos: false,
  min_tokens: 0,
  logprobs: null,
  prompt_logprobs: null,
  skip_special_tokens: true,
  spaces_between_special_tokens: true,
  include_stop_str_in_output: false,
  logit_bias: null,
};

const RANGES: readonly [name: string, isRight: (value: number) => boolean, range: string][] = [
  ["presence_penalty", (value) => value >= -2 && value <= 2, "in [-2, 2]"],
  ["frequency_penalty", (value) => value >= -2 && value <= 2, "in [-2, 2]"],
  ["repetition_penalty", (value) => value > 0, "greater than zero"],
  ["temperature", (value) => value >= 0, "non-negative"],
  ["temperature", (value) => value <= 2, "in [0, 2]"],
  ["top_p", (value) => value > 0 && value <= 1, "in (0, 1]"],
  ["top_k", (value) => value >= -1, "0 (disable), or at least 1"],
  ["min_p", (value) => value >= 0 && value <= 1, "in [0, 1]"],
  ["max_tokens", (value) => value >= 1, "at least 1"],
  ["n", (value) => value >= 1, "at least 1"],
];

/** Below this a temperature means greedy sampling. */
const GREEDY_TEMPERATURE = 1e-5;

/** Temperatures below it that are not greedy are raised to it. */
const LOWEST_TEMPERATURE = 0.01;

/** Sampling parameters, read and checked. */
export interface DecodedSampling {
  readonly sequence: Omit<VllmSequenceRequest, "rid" | "inputIds" | "externalId">;
  /** Sequences for each prompt. */
  readonly sampleCount: number;
}

/**
 * Reads sampling parameters with the engine's defaults, limits and rewritings. Names that it does
 * not know are passed over, as the server does.
 *
 * **Source:** vllm-project/vllm vllm/sampling_params.py.
 *
 * @throws RequestRefused
 */
export function readSampling(
  given: JsonObject,
  { maxTokens, eosTokenId }: { maxTokens: number; eosTokenId: number },
): DecodedSampling {
  const known = Object.entries(given).filter(
    ([name, value]) => (name in DEFAULTS || name === "max_tokens") && value !== null,
  );
  const stated: JsonObject = { ...DEFAULTS, max_tokens: maxTokens, ...Object.fromEntries(known) };
  for (const [name, isRight, range] of RANGES) {
    const value = stated[name];
    if (typeof value !== "number") {
      throw new RequestRefused(
        badShape(`sampling_params.${name}`, "Input should be a valid number"),
      );
    }
    if (isRight(value)) continue;
    throw new RequestRefused(badRequest(`${name} must be ${range}, got ${value}.`, name));
  }
  const samplingParams = rewrite(stated);
  const stopIds = (samplingParams["stop_token_ids"] ?? []) as readonly number[];
  const { logprobs } = samplingParams;
  return {
    sampleCount: Number(samplingParams["n"]),
    sequence: {
      samplingParams,
      maxNewTokens: Number(samplingParams["max_tokens"]),
      // The model's own stop goes, the request's stay.
      stopTokenIds: samplingParams["ignore_eos"] === true ? stopIds : [...stopIds, eosTokenId],
      logprobCount: typeof logprobs === "number" ? logprobs : undefined,
    },
  };
}

function rewrite(stated: JsonObject): JsonObject {
  const temperature = Number(stated["temperature"]);
  if (temperature < GREEDY_TEMPERATURE) return { ...stated, top_p: 1, top_k: 0, min_p: 0 };
  return { ...stated, temperature: Math.max(temperature, LOWEST_TEMPERATURE) };
}
