import { isObject } from "../../../values/is-object.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import { RequestRefused, badRequest, badShape, missing, toPython } from "./error-replies.ts";
import { findJsonProblem } from "./json-problem.ts";
import type { ReleaseTraits } from "./releases.ts";
import type { ServedColumns } from "./served-columns.ts";
import { checkColumns, checkModel, fitCompletionBudget, readPrompt } from "./request-checks.ts";
import { readSampling } from "./sampling-parameters.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";

/** One decoded HTTP request. */
export interface DecodedRequest {
  readonly api: "generate" | "completions";
  /** The request's id in the reply. */
  readonly replyId: string;
  readonly requests: readonly VllmSequenceRequest[];
  readonly sessionId: string | undefined;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly returnTokenIds: boolean;
  /** True if an ids-only reply lists the prompt. */
  readonly listsPrompt: boolean;
  readonly returnTokensAsTokenIds: boolean;
}

/** The facts that decoding depends on. */
export interface DecodingContext {
  readonly traits: ReleaseTraits;
  /** The number of ids. All ids are below it. `undefined`: any id is accepted. */
  readonly vocabularySize: number | undefined;
  readonly servedModels: readonly string[];
  readonly contextLength: number;
  /** The id that ends a turn, as the model defines it. */
  readonly eosTokenId: number;
  readonly columns: ServedColumns;
  readonly newId: () => string;
  /** Returns a name for a sequence that no unfinished one has. */
  readonly toUniqueName: (name: string) => string;
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Reads and checks the body of `/inference/v1/generate`. Does not check the budget against the
 * context: a turn that fills the context ends with `length`.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/protocol.py and
 * serving.py.
 *
 * @throws RequestRefused
 */
export function decodeGenerate(exchange: HttpExchange, context: DecodingContext): DecodedRequest {
  const body = parseBody(exchange.body);
  const memberCount = Object.keys(body).length;
  const { vocabularySize } = context;
  const inputIds = readPrompt(body["token_ids"], {
    field: "token_ids",
    memberCount,
    vocabularySize,
  });
  const given = body["sampling_params"];
  if (!isObject(given)) throw new RequestRefused(missing("sampling_params", { memberCount }));
  checkModel(body["model"], context.servedModels);
  const { contextLength } = context;
  const remaining = Math.max(contextLength - inputIds.length, 1);
  const sampling = readSampling(given, {
    maxTokens: remaining,
    eosTokenId: context.eosTokenId,
    place: "sampling_params",
  });
  if (inputIds.length >= contextLength) {
    const suffix =
      inputIds.length === contextLength
        ? ` plus the number of requested output tokens (at least 1)`
        : "";
    const message =
      `The decoder prompt (length ${inputIds.length})${suffix} is longer than the maximum model ` +
      `length of ${contextLength}. Make sure that \`max_model_len\` is no smaller than the number ` +
      `of text tokens${suffix === "" ? "" : " (prompt + requested output tokens)"}.`;
    throw new RequestRefused(badRequest(message));
  }
  checkColumns(sampling.sequence, { promptLength: inputIds.length, served: context.columns });
  const name = nameRequest(exchange, body, context);
  const externalId = `generate-tokens-${name}`;
  const requests = Array.from({ length: sampling.sampleCount }, () => ({
    ...sampling.sequence,
    inputIds,
    maxNewTokens: Math.min(sampling.sequence.maxNewTokens, remaining),
    rid: context.toUniqueName(name),
    externalId,
  }));
  return {
    api: "generate",
    replyId: externalId,
    requests,
    sessionId: readHeader(exchange, "x-session-id"),
    stream: body["stream"] === true,
    includeUsage: wantsUsage(body),
    returnTokenIds: true,
    listsPrompt: body["return_token_ids"] === true,
    returnTokensAsTokenIds: true,
  };
}

/**
 * Reads and checks the body of `/v1/completions`. The server has no tokenizer, so a text as prompt
 * is refused.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/openai/completion/protocol.py and serving.py.
 *
 * @throws RequestRefused
 */
export function decodeCompletions(
  exchange: HttpExchange,
  context: DecodingContext,
): DecodedRequest {
  const body = parseBody(exchange.body);
  const { prompt } = body;
  if (prompt === undefined || prompt === null || prompt === "") {
    const message = "Either prompt or prompt_embeds must be provided and non-empty.";
    throw new RequestRefused(badRequest(message, { parameter: "prompt" }));
  }
  if (Array.isArray(prompt) && prompt.length === 0) {
    const message = "list index out of range";
    throw new RequestRefused({ status: 500, message, type: "InternalServerError" });
  }
  const isBatch = Array.isArray(prompt) && Array.isArray(prompt[0]);
  const prompts = (isBatch ? (prompt as unknown[]) : [prompt]).map((item) =>
    readPrompt(item, {
      field: "prompt",
      memberCount: Object.keys(body).length,
      vocabularySize: context.vocabularySize,
    }),
  );
  checkModel(body["model"], context.servedModels);
  const name = nameRequest(exchange, body, context);
  const sampling = readSampling(body, {
    maxTokens: 16,
    eosTokenId: context.eosTokenId,
    place: "",
  });
  const requests = prompts.flatMap((inputIds, index) => {
    checkColumns(sampling.sequence, { promptLength: inputIds.length, served: context.columns });
    const maxNewTokens = fitCompletionBudget({
      promptLength: inputIds.length,
      maxNewTokens: sampling.sequence.maxNewTokens,
      contextLength: context.contextLength,
      traits: context.traits,
    });
    return Array.from({ length: sampling.sampleCount }, () => ({
      ...sampling.sequence,
      inputIds,
      maxNewTokens,
      rid: context.toUniqueName(name),
      externalId: `cmpl-${name}-${index}`,
    }));
  });
  const { session_id: sessionId } = body;
  return {
    api: "completions",
    replyId: `cmpl-${name}`,
    requests,
    sessionId:
      typeof sessionId === "string" && sessionId !== ""
        ? sessionId
        : readHeader(exchange, "x-session-id"),
    stream: body["stream"] === true,
    includeUsage: wantsUsage(body),
    returnTokenIds: body["return_token_ids"] === true,
    listsPrompt: false,
    returnTokensAsTokenIds: body["return_tokens_as_token_ids"] === true,
  };
}

/** Returns the request's name from the header if it exists, otherwise from the body. */
function nameRequest(exchange: HttpExchange, body: JsonObject, { newId }: DecodingContext): string {
  const { request_id: given } = body;
  if (given !== undefined && typeof given !== "string") {
    const message = "Input should be a valid string";
    const input = toPython(given);
    throw new RequestRefused(badShape({ kind: "string_type", at: "request_id", message, input }));
  }
  return readHeader(exchange, "x-request-id") ?? given ?? newId();
}

function readHeader({ request }: HttpExchange, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function wantsUsage(body: JsonObject): boolean {
  const options = body["stream_options"];
  return isObject(options) && options["include_usage"] === true;
}

function parseBody(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { place, problem } = findJsonProblem(text);
    const details = `'error': "${problem}"`;
    const input = "'<dict of 0 items>'";
    const message = "JSON decode error";
    const kind = "json_invalid";
    throw new RequestRefused(badShape({ kind, at: `${place}`, message, input, details }));
  }
  if (isObject(value)) return value;
  const message = "Input should be a valid dictionary";
  throw new RequestRefused(
    badShape({ kind: "model_attributes_type", at: "", message, input: toPython(value) }),
  );
}
