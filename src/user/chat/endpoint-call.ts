import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";
import { STATUS_CODES } from "node:http";
import { failureOfOutcome, readErrorMessage } from "../../engine/http/http-failure.ts";
import type { HttpReply, HttpTransport } from "../../engine/http/http-transport.ts";
import { ChatFailure } from "./chat-failure.ts";
import type { ChatFinishReason, ChatRequest } from "./chat-model.ts";
import type { ChatUsage } from "./chat-budget.ts";
import { readContent } from "./read-content.ts";
import type { LanguageModelAnswer } from "./language-model-call.ts";

/** The connection to an OpenAI-compatible server. */
interface EndpointConnection {
  /** A transport to the server's base URL. */
  readonly transport: HttpTransport;
  readonly headers: Readonly<Record<string, string>>;
  /** The server's name for the model. */
  readonly model: string;
}

/** An HTTP response that is not a completion, with the fields that `classifyChatError()` reads. */
class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly statusCode: number;
  readonly responseBody: string;
  readonly responseHeaders: Readonly<Record<string, string>>;

  constructor(message: string, { status, text, headers }: HttpReply) {
    super(message);
    this.statusCode = status;
    this.responseBody = text;
    this.responseHeaders = Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        typeof value === "string" ? [[name, value]] : [],
      ),
    );
  }
}

/**
 * Calls a server's `/chat/completions` once. It does not use an SDK, because a simulated user is
 * called for every other turn and an SDK's call takes many times as long.
 *
 * **Source:** platform.openai.com/docs/api-reference/chat/create (request, reply, finish reasons).
 *
 * @throws ChatFailure, or an error that `classifyChatError()` can classify.
 * @throws the signal's reason if it is aborted.
 */
export async function callEndpoint(
  { transport, headers, model }: EndpointConnection,
  { messages, temperature, maxTokens, seed }: ChatRequest,
  { signal }: { signal: AbortSignal },
): Promise<LanguageModelAnswer> {
  const outcome = await transport.send({
    method: "POST",
    path: "/chat/completions",
    headers,
    // `JSON.stringify()` omits undefined members.
    body: JSON.stringify({ model, messages, temperature, max_tokens: maxTokens, seed }),
    signal,
  });
  signal.throwIfAborted();
  if (outcome.type === "reply") return readReply(outcome);
  const { problem, cause } = failureOfOutcome(outcome, Infinity);
  if (outcome.type === "oversized" || outcome.type === "undecodable") {
    throw new ChatFailure("bad-reply", problem, { cause });
  }
  throw new Error(problem, { cause });
}

function readReply(reply: HttpReply): LanguageModelAnswer {
  const { status, text, headers } = reply;
  if (status >= 300 && status < 400) {
    const place = typeof headers["location"] === "string" ? ` to ${headers["location"]}` : "";
    throw new EndpointError(`moved${place}, which is not followed`, reply);
  }
  if (status < 200 || status >= 300) {
    throw new EndpointError(readErrorMessage(text) || (STATUS_CODES[status] ?? ""), reply);
  }
  const body = readBody(text);
  throwInBand(body, reply);
  const answer = readCompletion(body);
  if (answer === undefined) throw new EndpointError("no completion", reply);
  return answer;
}

/**
 * Throws the error in a reply with status 200. A proxy may have sent the status before its upstream
 * failed.
 *
 * **Source:** openrouter.ai/docs/api-reference/errors (`error` of the reply, or of its choice).
 */
function throwInBand(body: Fields, reply: HttpReply): void {
  const { error: ofChoice, finish_reason: reason } = firstChoice(body);
  const error = isObject(body["error"]) ? body["error"] : ofChoice;
  if (!isObject(error) && reason !== "error") return;
  const { code, message } = fieldsOf(error);
  const isStatus = typeof code === "number" && code >= 400 && code < 600;
  throw new EndpointError(typeof message === "string" ? message : "its model failed", {
    ...reply,
    status: isStatus ? code : 502,
  });
}

type Fields = Readonly<Record<string, unknown>>;

function readBody(text: string): Fields {
  return fieldsOf(parseJsonText(text));
}

function firstChoice({ choices }: Fields): Fields {
  return Array.isArray(choices) ? fieldsOf(choices[0]) : {};
}

/** Reads a completion. Returns `undefined` if the body is not one. */
function readCompletion(body: Fields): LanguageModelAnswer | undefined {
  const { message, finish_reason: reason } = firstChoice(body);
  if (!isObject(message)) return undefined;
  return {
    ...readContent(message),
    finishReason: toFinishReason(reason),
    usage: readUsage(body["usage"]),
  };
}

/** Reasons for a cut reply that servers pass on from Mistral, Anthropic and Google. */
const cutReasons: readonly unknown[] = [
  "length",
  "max_tokens",
  "MAX_TOKENS",
  "model_length",
  "model_context_window_exceeded",
];

function toFinishReason(reason: unknown): ChatFinishReason {
  if (reason === "content_filter") return "content-filter";
  if (cutReasons.includes(reason)) return "length";
  return reason === "stop" ? reason : "other";
}

function readUsage(usage: unknown): ChatUsage | null {
  const {
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details,
  } = fieldsOf(usage);
  const { cached_tokens: cached } = fieldsOf(prompt_tokens_details);
  if (typeof input !== "number" && typeof output !== "number") return null;
  return {
    inputTokenCount: countOf(input),
    cachedInputTokenCount: countOf(cached),
    outputTokenCount: countOf(output),
  };
}

function countOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}
