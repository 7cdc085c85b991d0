import type { ReleaseTraits } from "./releases.ts";
import type { SequenceRequest } from "../shared/sequence-request.ts";
import { readColumnOptions, type ColumnOptions, type ServedColumns } from "./column-options.ts";
import { RequestRefused } from "./request-refused.ts";

/** One sequence to sample, with the options of its reply. */
export interface DecodedRequest extends SequenceRequest {
  readonly returnLogprob: boolean;
  readonly logprobStartLen: number;
  readonly topLogprobsNum: number;
  readonly returnTextInLogprobs: boolean;
  readonly returnPromptTokenIds: boolean;
  readonly columns: ColumnOptions;
}

/** One decoded HTTP request. */
export interface DecodedGenerate {
  readonly requests: readonly DecodedRequest[];
  /** True if the reply is a list: for a batch, or several samples of one prompt. */
  readonly isList: boolean;
  readonly stream: boolean;
}

type JsonObject = Readonly<Record<string, unknown>>;

const SAMPLING_DEFAULTS: JsonObject = {
  max_new_tokens: 128,
  stop: null,
  stop_token_ids: null,
  stop_regex: null,
  temperature: 1.0,
  top_p: 1.0,
  top_k: -1,
  min_p: 0.0,
  frequency_penalty: 0.0,
  presence_penalty: 0.0,
  repetition_penalty: 1.0,
  min_new_tokens: 0,
  n: 1,
  json_schema: null,
  regex: null,
  ebnf: null,
  structural_tag: null,
  ignore_eos: false,
  skip_special_tokens: true,
  spaces_between_special_tokens: true,
  no_stop_trim: false,
  stream_interval: null,
  logit_bias: null,
  sampling_seed: null,
  custom_params: null,
};

const RANGES: readonly [name: string, isRight: (value: number) => boolean, range: string][] = [
  ["temperature", (value) => value >= 0, "non-negative"],
  ["top_p", (value) => value > 0 && value <= 1, "in (0, 1]"],
  ["min_p", (value) => value >= 0 && value <= 1, "in [0, 1]"],
  ["top_k", (value) => value === -1 || value >= 1, "-1 (disable) or at least 1"],
  ["frequency_penalty", (value) => value >= -2 && value <= 2, "in [-2, 2]"],
  ["presence_penalty", (value) => value >= -2 && value <= 2, "in [-2, 2]"],
  ["repetition_penalty", (value) => value > 0 && value <= 2, "in (0, 2]"],
  ["min_new_tokens", (value) => value >= 0, "non-negative"],
  ["max_new_tokens", (value) => value >= 0, "non-negative"],
];

/** Parameters of newer releases. This server ignores them. */
const NEWER_PARAMETERS = ["beam_width", "watermark", "choice"];

/** Parameters that are whole numbers in the server. */
const WHOLE_PARAMETERS = new Set(["max_new_tokens", "top_k", "min_new_tokens", "n"]);

/** Temperatures below this value mean greedy sampling. */
const GREEDY_TEMPERATURE = 1e-6;

/** The facts that decoding depends on. */
interface DecodingContext {
  readonly traits: ReleaseTraits;
  /** The id that ends a turn, as the model defines it. */
  readonly eosTokenId: number;
  readonly contextLength: number;
  readonly newRid: () => string;
  readonly columns: ServedColumns;
  /** Returns true if a request of this name is running. */
  readonly isLive: (rid: string) => boolean;
}

/**
 * Reads and checks the body of `/generate`, with the engine's defaults, limits and refusals. The
 * server has no tokenizer, so a `text` is refused.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/io_struct.py,
 * python/sglang/srt/sampling/sampling_params.py, python/sglang/srt/managers/tokenizer_manager.py.
 *
 * @throws RequestRefused
 */
export function decodeGenerate(bodyText: string, context: DecodingContext): DecodedGenerate {
  const body = parseBody(bodyText);
  try {
    return decodeBody(body, context);
  } catch (error) {
    if (error instanceof RequestRefused) error.isStream = body["stream"] === true;
    throw error;
  }
}

function decodeBody(body: JsonObject, context: DecodingContext): DecodedGenerate {
  const { input_ids: inputIds, rid, stream = false } = body;
  if (inputIds === undefined || inputIds === null) {
    const message =
      body["text"] === undefined
        ? "Either text, input_ids or input_embeds should be provided."
        : "The server has no tokenizer.";
    throw new RequestRefused("value", message);
  }
  if (!Array.isArray(inputIds)) throw new RequestRefused("shape", "input_ids: not a list");
  if (inputIds.length === 0) throw new RequestRefused("value", "input_ids cannot be empty.");
  const isBatch = Array.isArray(inputIds[0]);
  const prompts = (isBatch ? inputIds : [inputIds]) as unknown[];

  const samplings = prompts.map((_, index) =>
    readSampling(perItem(body["sampling_params"], index) ?? {}, context.traits),
  );
  const n = Number(samplings[0]?.parameters["n"] ?? 1);
  const isList = isBatch || n > 1;
  const requests = prompts.flatMap((prompt, index) =>
    Array.from({ length: n }, () => {
      const name = nameRequest({ rid, index, isBatch, isRepeated: n > 1, context });
      const sampling = samplings[index] ?? readSampling({}, context.traits);
      return toRequest(body, { prompt, name, sampling, index, context });
    }),
  );
  return { requests, isList, stream: stream === true };
}

/**
 * Returns the name of a sequence. A batch with one name appends the index to it. Several samples of
 * a prompt all get new names.
 */
function nameRequest({
  rid,
  index,
  isBatch,
  isRepeated,
  context,
}: {
  rid: unknown;
  index: number;
  isBatch: boolean;
  isRepeated: boolean;
  context: DecodingContext;
}): string {
  if (isRepeated || rid === undefined || rid === null) return context.newRid();
  const name: unknown = Array.isArray(rid) ? rid[index] : rid;
  if (typeof name !== "string") throw new RequestRefused("shape", "rid: not a string");
  const full = isBatch && !Array.isArray(rid) ? `${name}_${index}` : name;
  if (context.isLive(full)) {
    throw new RequestRefused("value", `Duplicate request ID detected: ${full}`);
  }
  return full;
}

function toRequest(
  body: JsonObject,
  {
    prompt,
    name,
    sampling,
    index,
    context,
  }: {
    prompt: unknown;
    name: string;
    sampling: Sampling;
    index: number;
    context: DecodingContext;
  },
): DecodedRequest {
  if (!Array.isArray(prompt) || !prompt.every((id) => Number.isInteger(id))) {
    throw new RequestRefused("shape", "input_ids: not a list of integers");
  }
  const inputIds = prompt as number[];
  const maxNewTokens = fitBudget(inputIds.length, sampling, context.contextLength);
  const logprobStartLen = Number(perItem(body["logprob_start_len"], index) ?? -1);
  if (logprobStartLen > inputIds.length) {
    throw new RequestRefused(
      "value",
      `logprob_start_len (${logprobStartLen}) is higher than the number of input tokens ` +
        `(${inputIds.length}).`,
    );
  }
  const returnLogprob = perItem(body["return_logprob"], index) === true;
  const { parameters } = sampling;
  const stopTokenIds = (parameters["stop_token_ids"] ?? []) as readonly number[];
  return {
    rid: name,
    inputIds,
    samplingParams: parameters,
    maxNewTokens,
    samplesNothing: maxNewTokens === 0 && context.traits.samplesNothing,
    stopTokenIds: parameters["ignore_eos"] === true ? [] : [...stopTokenIds, context.eosTokenId],
    returnLogprob,
    scoresInput: returnLogprob && logprobStartLen >= 0,
    logprobStartLen,
    topLogprobsNum: Number(perItem(body["top_logprobs_num"], index) ?? 0),
    returnTextInLogprobs: body["return_text_in_logprobs"] === true,
    returnPromptTokenIds: body["return_prompt_token_ids"] === true,
    columns: readColumnOptions(body, {
      promptLength: inputIds.length,
      topK: Number(parameters["top_k"]),
      served: context.columns,
    }),
  };
}

/**
 * Returns the token budget. A budget in the request must fit into the context; the default is cut
 * to it.
 */
function fitBudget(promptLength: number, sampling: Sampling, contextLength: number): number {
  if (promptLength >= contextLength) {
    throw new RequestRefused(
      "value",
      `The input (${promptLength} tokens) is longer than the model's context length ` +
        `(${contextLength} tokens).`,
    );
  }
  const budget = Number(sampling.parameters["max_new_tokens"]);
  if (sampling.isBudgetStated) {
    if (promptLength + budget <= contextLength) return budget;
    throw new RequestRefused(
      "value",
      "Requested token count exceeds the model's maximum context length of " +
        `${contextLength} tokens. You requested a total of ${promptLength + budget} tokens: ` +
        `${promptLength} tokens from the input messages and ${budget} tokens for the completion. ` +
        "Please reduce the number of tokens in the input messages or the completion to fit within " +
        "the limit.",
    );
  }
  return Math.max(Math.min(budget, contextLength - promptLength - 1), 0);
}

interface Sampling {
  readonly parameters: JsonObject;
  readonly isBudgetStated: boolean;
}

function readSampling(given: unknown, { checksParameters }: ReleaseTraits): Sampling {
  if (given === null || typeof given !== "object") {
    throw new RequestRefused("shape", "sampling_params: not an object");
  }
  const stated = Object.entries(given).filter(([, value]) => value !== null);
  if (checksParameters) checkParameters(given as JsonObject);
  // The engine constructs a typed object from the parameters. An unknown name is an uncaught
  // TypeError.
  else if (Object.keys(given).some((name) => !(name in SAMPLING_DEFAULTS))) {
    throw new RequestRefused("crash", "Internal Server Error");
  }
  const sampling: JsonObject = { ...SAMPLING_DEFAULTS, ...Object.fromEntries(stated) };
  for (const [name, isRight, range] of RANGES) {
    const value = sampling[name];
    if (typeof value === "number" && isRight(value)) continue;
    throw new RequestRefused("value", `${name} must be ${range}, got ${JSON.stringify(value)}.`);
  }
  const isGreedy = Number(sampling["temperature"]) < GREEDY_TEMPERATURE;
  return {
    parameters: isGreedy ? { ...sampling, temperature: 1.0, top_k: 1 } : sampling,
    isBudgetStated: stated.some(([name]) => name === "max_new_tokens"),
  };
}

/**
 * Refuses unknown parameters, and texts in place of numbers.
 *
 * **Source:** recorded from SGLang 0.5.23.
 */
function checkParameters(given: JsonObject): void {
  const names = [...Object.keys(SAMPLING_DEFAULTS), ...NEWER_PARAMETERS];
  for (const [name, value] of Object.entries(given)) {
    if (!names.includes(name)) {
      const known = names.map((each) => `\`${each}\``).join(", ");
      const message = `unknown field \`${name}\`, expected one of ${known}`;
      throw new RequestRefused("text", message);
    }
    if (typeof value === "string" && typeof SAMPLING_DEFAULTS[name] === "number") {
      const kind = WHOLE_PARAMETERS.has(name) ? "i64" : "f64";
      const message = `invalid type: string ${JSON.stringify(value)}, expected ${kind}`;
      throw new RequestRefused("text", message);
    }
  }
}

function perItem(value: unknown, index: number): unknown {
  return Array.isArray(value) ? (value as unknown[])[index] : value;
}

function parseBody(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const what = `'msg': 'JSON decode error', 'input': {}, 'ctx': {'error': 'unexpected end of data'}`;
    const message = `1 validation error:\n  {'type': 'json_invalid', 'loc': ('body', ${text.length}), ${what}}`;
    throw new RequestRefused("shape", message);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new RequestRefused("shape", "body: not an object");
  }
  return value as JsonObject;
}
