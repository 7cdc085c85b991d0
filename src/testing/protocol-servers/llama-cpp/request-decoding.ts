import type { SequenceRequest } from "../shared/sequence-request.ts";
import { RequestRefused, invalid } from "./error-replies.ts";

/** One sequence to sample, with the options of its reply. */
export interface LlamaCppSequenceRequest extends SequenceRequest {
  /** The number of most likely tokens per position. 0 for no probabilities. */
  readonly shownCount: number;
  readonly returnsTokens: boolean;
  readonly stream: boolean;
  /** The slot that the request names. `undefined` if it names none. */
  readonly slotIndex: number | undefined;
  /** The only token that a bias allows. `undefined` without such a bias. */
  readonly forcedId: number | undefined;
  /** True if the text is not parsed, so that it may end inside a character. */
  readonly leavesTextUnparsed: boolean;
  /** The fields of the reply. Empty for all. */
  readonly responseFields: readonly string[];
}

/** The facts that decoding depends on. */
export interface DecodingContext {
  readonly contextLength: number;
  readonly vocabularySize: number;
  /** The ids that end a turn, as the model defines them. */
  readonly endTokenIds: readonly number[];
  readonly slotCount: number;
  /** The treatment of a grammar for the text: applied, refused as malformed, or ignored. */
  readonly textGrammar: "known" | "refused" | "unknown";
  /** True if an invalid JSON body is the client's fault. */
  readonly blamesClient: boolean;
  readonly newId: () => string;
}

/** One decoded HTTP request. */
export interface DecodedCompletion {
  readonly requests: readonly LlamaCppSequenceRequest[];
  /** True if the reply is a list: for a batch, or several samples of one prompt. */
  readonly isList: boolean;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The default values of a server without command-line options. */
const DEFAULTS: JsonObject = {
  n_predict: -1,
  temperature: 0.8,
  dynatemp_range: 0,
  top_k: 40,
  top_p: 0.95,
  min_p: 0.05,
  min_keep: 0,
  typical_p: 1,
  repeat_last_n: 64,
  repeat_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  mirostat: 0,
  seed: 4_294_967_295,
  n_probs: 0,
  samplers: [
    "penalties",
    "dry",
    "top_n_sigma",
    "top_k",
    "typ_p",
    "top_p",
    "min_p",
    "xtc",
    "temperature",
  ],
  ignore_eos: false,
  cache_prompt: true,
  post_sampling_probs: false,
  return_tokens: false,
  stream: false,
};

/** A bias of at least this value forces its token. */
const FORCING_BIAS = 1e6;

/**
 * Reads and checks the body of `/completion`. The server has no tokenizer, so texts in the prompt are
 * refused.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-schema.cpp and
 * tools/server/server-context.cpp (`handle_completions_impl`).
 *
 * @throws RequestRefused
 */
export function decodeCompletion(bodyText: string, context: DecodingContext): DecodedCompletion {
  const body = parseBody(bodyText, context);
  const { prompt } = body;
  const isBatch = Array.isArray(prompt) && prompt.length > 0 && prompt.every(Array.isArray);
  const prompts = isBatch ? (prompt as unknown[]) : [prompt];
  const copyCount = readCopyCount(body);
  const requests = prompts.flatMap((each) =>
    Array.from({ length: copyCount }, () => decodeOne(body, each, context)),
  );
  return { requests, isList: isBatch || copyCount > 1 };
}

/** Reads the number of samples, which has two names. */
function readCopyCount({ n, n_cmpl: count = n }: JsonObject): number {
  if (count === undefined || count === null) return 1;
  checkType("n_cmpl", count, 1);
  return Math.max(Number(count), 1);
}

function decodeOne(
  body: JsonObject,
  prompt: unknown,
  context: DecodingContext,
): LlamaCppSequenceRequest {
  const inputIds = readPrompt(prompt, context);
  const stated = Object.entries(body).filter(([name, value]) => name in DEFAULTS && value !== null);
  const settings: JsonObject = { ...DEFAULTS, ...Object.fromEntries(stated) };
  for (const [name, value] of Object.entries(DEFAULTS)) {
    // The server ignores `samplers` of another type.
    if (name !== "samplers") checkType(name, settings[name], value);
  }
  checkBudget(Number(settings["n_predict"]));
  const { contextLength } = context;
  if (inputIds.length >= contextLength) {
    throw new RequestRefused({
      type: "exceed_context_size_error",
      message:
        `request (${inputIds.length} tokens) exceeds the available context size ` +
        `(${contextLength} tokens), try increasing it`,
      details: { n_prompt_tokens: inputIds.length, n_ctx: contextLength },
    });
  }
  const budget = Number(settings["n_predict"]);
  const slot = body["id_slot"];
  return {
    rid: context.newId(),
    inputIds,
    samplingParams: settings,
    maxNewTokens: Math.min(budget < 0 ? contextLength : budget, contextLength - inputIds.length),
    stopTokenIds: settings["ignore_eos"] === true ? [] : context.endTokenIds,
    shownCount: Number(settings["n_probs"]),
    returnsTokens: settings["return_tokens"] === true,
    stream: settings["stream"] === true,
    slotIndex: typeof slot === "number" && slot >= 0 ? slot % context.slotCount : undefined,
    forcedId: readForcedId(body["logit_bias"]),
    leavesTextUnparsed: readGrammar(body["chat_parser"], context),
    responseFields: readFields(body["response_fields"]),
  };
}

function readPrompt(prompt: unknown, { vocabularySize }: DecodingContext): readonly number[] {
  if (prompt === undefined) {
    throw invalid("[json.exception.out_of_range.403] key 'prompt' not found");
  }
  if (!Array.isArray(prompt)) throw invalid('"prompt" must be a list of tokens here');
  if (prompt.length === 0) throw invalid('"prompt" must not be empty');
  for (const id of prompt as unknown[]) {
    if (typeof id !== "number") throw invalid('"prompt" must be a list of tokens here');
    if (!Number.isInteger(id) || id < 0 || id >= vocabularySize) {
      throw invalid("Prompt contains invalid tokens");
    }
  }
  return prompt as number[];
}

function checkType(name: string, value: unknown, like: unknown): void {
  const kind = Array.isArray(like) ? "array" : typeof like;
  const found = Array.isArray(value) ? "array" : typeof value;
  if (found === kind) return;
  throw invalid(
    `Field '${name}': [json.exception.type_error.302] type must be ${kind}, but is ${found}`,
  );
}

function checkBudget(budget: number): void {
  if (budget >= -1) return;
  throw invalid(
    `Field 'n_predict': Value must be between -1 <= value <= 2147483647, but got ${budget}`,
  );
}

function readForcedId(bias: unknown): number | undefined {
  if (!Array.isArray(bias)) return undefined;
  for (const entry of bias as unknown[]) {
    const [id, value] = Array.isArray(entry) ? (entry as unknown[]) : [];
    if (typeof id === "number" && typeof value === "number" && value >= FORCING_BIAS) return id;
  }
  return undefined;
}

function readGrammar(grammar: unknown, { textGrammar }: DecodingContext): boolean {
  if (typeof grammar !== "string" || textGrammar === "unknown") return false;
  if (textGrammar === "known") return true;
  throw invalid("Field 'chat_parser': Unknown parser type: epsilon");
}

function readFields(fields: unknown): readonly string[] {
  return Array.isArray(fields) ? (fields as string[]) : [];
}

function parseBody(text: string, { blamesClient }: DecodingContext): JsonObject {
  try {
    return JSON.parse(text) as JsonObject;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const problem = `parse error at line 1, column ${text.length + 1}: ${error.message}`;
    const message = `[json.exception.parse_error.101] ${problem}`;
    throw new RequestRefused({
      type: blamesClient ? "invalid_request_error" : "server_error",
      message,
    });
  }
}
