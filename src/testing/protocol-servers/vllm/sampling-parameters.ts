import { RequestRefused, badRequest, badShape, toPython } from "./error-replies.ts";
import type { ShapeProblem, VllmError } from "./error-replies.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";

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

/**
 * The valid range of a parameter. Also says if the error for an invalid value has the parameter's
 * name as a separate field.
 */
interface Range {
  readonly name: string;
  readonly isRight: (value: number) => boolean;
  readonly range: string;
  readonly isNamed?: true;
}

const RANGES: readonly Range[] = [
  { name: "presence_penalty", isRight: (value) => Math.abs(value) <= 2, range: "in [-2, 2]" },
  { name: "frequency_penalty", isRight: (value) => Math.abs(value) <= 2, range: "in [-2, 2]" },
  { name: "repetition_penalty", isRight: (value) => value > 0, range: "greater than zero" },
  { name: "temperature", isRight: (value) => value >= 0, range: "non-negative", isNamed: true },
  { name: "temperature", isRight: (value) => value <= 2, range: "in [0, 2]", isNamed: true },
  { name: "top_p", isRight: (value) => value > 0 && value <= 1, range: "in (0, 1]", isNamed: true },
  { name: "top_k", isRight: (value) => value >= -1, range: "0 (disable), or at least 1" },
  { name: "min_p", isRight: (value) => value >= 0 && value <= 1, range: "in [0, 1]" },
  { name: "max_tokens", isRight: (value) => value >= 1, range: "at least 1", isNamed: true },
  { name: "n", isRight: (value) => value >= 1, range: "at least 1" },
];

/** Parameters that a request need not have. */
const WITHOUT_DEFAULT = new Set(["max_tokens", "routed_experts_prompt_start"]);

/** Parameters that are whole numbers in the server. */
const WHOLE = new Set(["top_k", "max_tokens", "n"]);

/** Temperatures below this value mean greedy sampling. */
const GREEDY_TEMPERATURE = 1e-5;

/** The lowest temperature that is not greedy. Lower ones are raised to it. */
const LOWEST_TEMPERATURE = 0.01;

/** Sampling parameters, read and checked. */
interface DecodedSampling {
  readonly sequence: Omit<VllmSequenceRequest, "rid" | "inputIds" | "externalId">;
  /** The number of sequences for each prompt. */
  readonly sampleCount: number;
}

/**
 * Reads sampling parameters with the engine's defaults, limits and conversions. Ignores unknown
 * names, as the server does.
 *
 * **Source:** vllm-project/vllm vllm/sampling_params.py.
 *
 * @throws RequestRefused
 */
export function readSampling(
  given: JsonObject,
  {
    maxTokens,
    eosTokenId,
    place,
  }: {
    maxTokens: number;
    eosTokenId: number;
    /** The body's member with the parameters, or `""` if they are in the body itself. */
    place: "" | "sampling_params";
  },
): DecodedSampling {
  const known = Object.entries(given).filter(
    ([name, value]) => (name in DEFAULTS || WITHOUT_DEFAULT.has(name)) && value !== null,
  );
  const stated: JsonObject = { ...DEFAULTS, max_tokens: maxTokens, ...Object.fromEntries(known) };
  for (const { name, isRight, range, isNamed } of RANGES) {
    const number = stated[name];
    if (typeof number !== "number") throw new RequestRefused(badNumber(name, { given, place }));
    if (isRight(number)) continue;
    const value = WHOLE.has(name) || !Number.isInteger(number) ? `${number}` : `${number}.0`;
    const message = `${name} must be ${range}, got ${value}.`;
    throw new RequestRefused(badRequest(message, isNamed ? { parameter: name, value } : {}));
  }
  const samplingParams = rewrite(stated);
  const stopIds = (samplingParams["stop_token_ids"] ?? []) as readonly number[];
  const { logprobs, prompt_logprobs: promptLogprobs } = samplingParams;
  if (promptLogprobs !== null) checkPromptLogprobs(promptLogprobs, place);
  return {
    sampleCount: Number(samplingParams["n"]),
    sequence: {
      samplingParams,
      maxNewTokens: Number(samplingParams["max_tokens"]),
      // `ignore_eos` removes the model's own stop id. The request's stop ids stay.
      stopTokenIds: samplingParams["ignore_eos"] === true ? stopIds : [...stopIds, eosTokenId],
      logprobCount: typeof logprobs === "number" ? logprobs : undefined,
      scoresInput: promptLogprobs !== null,
      routesFrom: Number(samplingParams["routed_experts_prompt_start"] ?? 0),
    },
  };
}

/**
 * Returns the error for a value that is not a number. In a member, the validator reports a problem
 * for the type and one for each field.
 */
function badNumber(
  name: string,
  { given, place }: { given: JsonObject; place: "" | "sampling_params" },
): VllmError {
  const value = given[name];
  const isText = typeof value === "string";
  const field: ShapeProblem = {
    kind: isText ? "float_parsing" : "float_type",
    at: toPlace(name, place),
    message: `Input should be a valid number${
      isText ? ", unable to parse string as a number" : ""
    }`,
    input: toPython(value),
  };
  if (place === "") return badShape(field);
  const whole: ShapeProblem = {
    kind: "is_instance_of",
    at: place,
    message: "Input should be an instance of SamplingParams",
    input: toPython(given),
    details: "'class': 'SamplingParams'",
  };
  return badShape(whole, field);
}

function toPlace(name: string, place: "" | "sampling_params"): string {
  return place === "" ? name : `${place}.${name}`;
}

function checkPromptLogprobs(count: unknown, place: "" | "sampling_params"): void {
  const name = "prompt_logprobs";
  if (!Number.isInteger(count)) {
    const message = "Input should be a valid integer";
    const input = toPython(count);
    throw new RequestRefused(
      badShape({ kind: "int_type", at: toPlace(name, place), message, input }),
    );
  }
  if ((count as number) >= -1) return;
  const message = `${name} must be non-negative or -1, got ${count as number}.`;
  throw new RequestRefused(badRequest(message, { parameter: name, value: `${count as number}` }));
}

function rewrite(stated: JsonObject): JsonObject {
  const temperature = Number(stated["temperature"]);
  if (temperature < GREEDY_TEMPERATURE) return { ...stated, top_p: 1, top_k: 0, min_p: 0 };
  return { ...stated, temperature: Math.max(temperature, LOWEST_TEMPERATURE) };
}
