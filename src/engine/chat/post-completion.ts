import { STATUS_CODES } from "node:http";
import { parseJsonText } from "../../json/parse-json.ts";
import { isCount } from "../../values/is-count.ts";
import { isObject } from "../../values/is-object.ts";
import { failureOfOutcome, readErrorMessage } from "../http/http-failure.ts";
import type { HttpReply } from "../http/http-transport.ts";
import type { ChatConnection } from "./chat-connection.ts";
import { ChatFailure } from "./chat-failure.ts";

/** The members of a JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** A completion: its first choice with a message, and the server's usage. */
export interface PostedCompletion {
  readonly message: Fields;
  readonly finishReason: unknown;
  readonly body: Fields;
}

/** The token counts of a reply, as the server reports them. */
export interface ReportedChatUsage {
  /** Includes cached input. */
  readonly inputTokenCount: number;
  /** The number of input tokens from the cache. Absent if the server does not report it. */
  readonly cachedInputTokenCount?: number;
  readonly outputTokenCount: number;
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
 * Calls a server's `/chat/completions` once. Does not use an SDK, because an SDK's call takes many times as long.
 *
 * **Source:** platform.openai.com/docs/api-reference/chat/create (request, reply, finish reasons).
 *
 * @param body - The request as JSON.
 * @throws ChatFailure, or an error that `classifyChatError()` can classify.
 * @throws the signal's reason if it is aborted.
 */
export async function postCompletion(
  { transport, headers }: ChatConnection,
  body: string,
  { signal }: { signal: AbortSignal },
): Promise<PostedCompletion> {
  const outcome = await transport.send({
    method: "POST",
    path: "/chat/completions",
    headers,
    body,
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

function readReply(reply: HttpReply): PostedCompletion {
  const { status, text, headers } = reply;
  if (status >= 300 && status < 400) {
    const place = typeof headers["location"] === "string" ? ` to ${headers["location"]}` : "";
    throw new EndpointError(`moved${place}, which is not followed`, reply);
  }
  if (status < 200 || status >= 300) {
    throw new EndpointError(readErrorMessage(text) || (STATUS_CODES[status] ?? ""), reply);
  }
  const body = fieldsOf(parseJsonText(text));
  throwInBand(body, reply);
  const { message, finish_reason: finishReason } = firstChoice(body);
  if (!isObject(message)) throw new EndpointError("no completion", reply);
  return { message, finishReason, body };
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

function firstChoice({ choices }: Fields): Fields {
  return Array.isArray(choices) ? fieldsOf(choices[0]) : {};
}

/** Reasons for a cut reply that servers pass on from Mistral, Anthropic and Google. */
const cutReasons: readonly unknown[] = [
  "length",
  "max_tokens",
  "MAX_TOKENS",
  "model_length",
  "model_context_window_exceeded",
];

/** True if the finish reason says that the reply is cut at a limit. */
export function isCutReason(reason: unknown): boolean {
  return cutReasons.includes(reason);
}

/** Reads the usage of a reply. `null` if the server reports none. A value that is not a count is not read. */
export function readChatUsage(usage: unknown): ReportedChatUsage | null {
  const {
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details,
  } = fieldsOf(usage);
  const { cached_tokens: cached } = fieldsOf(prompt_tokens_details);
  if (!isCount(input) && !isCount(output)) return null;
  return {
    inputTokenCount: isCount(input) ? input : 0,
    ...(isCount(cached) && { cachedInputTokenCount: cached }),
    outputTokenCount: isCount(output) ? output : 0,
  };
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {};
}
