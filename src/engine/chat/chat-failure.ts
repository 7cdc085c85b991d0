import { describeError } from "../../errors.ts";
import { Redactor } from "../../secrets/redactor.ts";

/** The kind of a failed attempt. A failure's code is the party and this kind. */
export type ChatFailureKind =
  | "timeout"
  | "unreachable"
  | "overloaded"
  | "server-error"
  | "bad-request"
  | "unauthorized"
  | "empty-reply"
  | "bad-reply"
  | "budget"
  | "content-filter"
  | "model-error";

/** One failed and classified attempt. */
export class ChatFailure extends Error {
  override readonly name = "ChatFailure";
  readonly kind: ChatFailureKind;
  /** True if a retry of the call can succeed. */
  readonly retryable: boolean;
  /** The wait that the server requested, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: ChatFailureKind,
    message: string,
    options: { retryable?: boolean; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/**
 * Classifies an error of an AI SDK model. Uses public fields and names instead of classes, so that errors of another
 * copy of the SDK are classified too.
 *
 * **Source:** vercel/ai, packages/provider/src/errors (`AI_APICallError` and its siblings).
 */
export function classifyChatError(error: unknown, { now }: { now: () => number }): ChatFailure {
  if (error instanceof ChatFailure) return error;
  const { name, statusCode, isRetryable } = readFields(error);
  const message = shorten(describeError(error));
  if (isTooLarge(error)) return new ChatFailure("bad-reply", message, { cause: error });
  if (statusCode !== undefined) return classifyStatus(error, { statusCode, isRetryable, now });
  if (isRetryable === true || isNetworkError(error)) {
    return new ChatFailure("unreachable", message, { retryable: true, cause: error });
  }
  const kind = kindByName.get(name ?? "") ?? "model-error";
  return new ChatFailure(kind, message, { retryable: kind === "bad-reply", cause: error });
}

const kindByName: ReadonlyMap<string, ChatFailureKind> = new Map([
  ["AI_InvalidResponseDataError", "bad-reply"],
  ["AI_TypeValidationError", "bad-reply"],
  ["AI_JSONParseError", "bad-reply"],
  ["AI_EmptyResponseBodyError", "bad-reply"],
  ["AI_NoContentGeneratedError", "empty-reply"],
  ["AI_NoSuchModelError", "bad-request"],
  ["AI_InvalidArgumentError", "bad-request"],
  ["AI_InvalidPromptError", "bad-request"],
  ["AI_UnsupportedFunctionalityError", "bad-request"],
  ["AI_LoadAPIKeyError", "unauthorized"],
  ["AI_LoadSettingError", "unauthorized"],
]);

function classifyStatus(
  error: unknown,
  options: {
    readonly statusCode: number;
    readonly isRetryable: boolean | undefined;
    readonly now: () => number;
  },
): ChatFailure {
  const { statusCode, isRetryable, now } = options;
  const { responseBody, responseHeaders } = readFields(error);
  const message = `HTTP ${statusCode}: ${shorten(describeError(error))}`;
  const retryAfterMs = readRetryAfter(responseHeaders, now);
  const again = { retryable: true, retryAfterMs, cause: error };
  const never = { cause: error };
  // The connection broke during a successful reply.
  if (statusCode < 300 && isRetryable === true)
    return new ChatFailure("unreachable", message, again);
  if (statusCode < 300) {
    const reply = JSON.stringify(shorten(responseBody ?? ""));
    return new ChatFailure("bad-reply", `HTTP ${statusCode}: ${reply} is not a completion`, again);
  }
  if (statusCode === 401 || statusCode === 403) {
    return new ChatFailure("unauthorized", message, never);
  }
  // The account has no quota left, so that a retry cannot succeed.
  if (statusCode === 429 && responseBody?.includes("insufficient_quota") === true) {
    return new ChatFailure("budget", message, never);
  }
  if (statusCode === 408) return new ChatFailure("timeout", message, again);
  if (statusCode === 429 || statusCode === 503 || statusCode === 529) {
    return new ChatFailure("overloaded", message, again);
  }
  if (statusCode >= 500) return new ChatFailure("server-error", message, again);
  return new ChatFailure("bad-request", message, never);
}

/** Shortens text to one line of at most 300 characters, because failures appear in tables. */
function shorten(text: string): string {
  // Secrets are removed before the cut, because a part of a key would not be recognised.
  const line = new Redactor().text(text).replace(/\s+/g, " ").trim();
  return line.length <= 300 ? line : `${line.slice(0, 299)}…`;
}

interface ErrorFields {
  readonly name?: string | undefined;
  readonly statusCode?: number | undefined;
  readonly isRetryable?: boolean | undefined;
  readonly responseBody?: string | undefined;
  readonly responseHeaders?: Readonly<Record<string, string>> | undefined;
}

function readFields(error: unknown): ErrorFields {
  return typeof error === "object" && error !== null ? error : {};
}

function* causes(error: unknown): Generator<{ readonly code?: unknown }> {
  let current = error;
  // A longer chain of causes is a cycle.
  for (let depth = 0; depth < 16 && current instanceof Error; depth++) {
    yield current as { code?: unknown };
    current = current.cause;
  }
}

function isTooLarge(error: unknown): boolean {
  return [...causes(error)].some(({ code }) => code === "UND_ERR_RES_EXCEEDED_MAX_SIZE");
}

const networkCode = new RegExp(
  "^(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_AGAIN|EPIPE|ETIMEDOUT|E(?:HOST|NET)UNREACH|" +
    "UND_ERR_.*)$",
);

function isNetworkError(error: unknown): boolean {
  return [...causes(error)].some(({ code }) => typeof code === "string" && networkCode.test(code));
}

/** Reads `retry-after-ms` of OpenAI, or `Retry-After` in seconds or as a date. */
function readRetryAfter(
  headers: Readonly<Record<string, string>> | undefined,
  now: () => number,
): number | undefined {
  const fine = headers?.["retry-after-ms"];
  if (fine !== undefined && /^\d+(?:\.\d+)?$/.test(fine)) return Number(fine);
  const coarse = headers?.["retry-after"];
  if (coarse === undefined) return undefined;
  if (/^\d+(?:\.\d+)?$/.test(coarse)) return Number(coarse) * 1000;
  const date = Date.parse(coarse);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now());
}
