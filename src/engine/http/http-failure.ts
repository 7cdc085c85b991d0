import type { FailureCode } from "../../errors.ts";
import { shorten } from "../../secrets/shorten.ts";
import type { HttpOutcome } from "./http-transport.ts";

/** A failed attempt of a request. */
export interface AttemptFailure {
  readonly code: FailureCode;
  /** The problem, as the second half of "Cannot …: <problem>". */
  readonly problem: string;
  /** The expected state, or the remedy. */
  readonly expected: string;
  /** True if the same request may succeed when it is repeated. */
  readonly retry: boolean;
  /** True if the engine may have sampled tokens for the request. */
  readonly maySample: boolean;
  /** The server's `Retry-After`, in milliseconds. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

const PROMPT_TOO_LONG =
  /longer than the (model's context length|maximum model length)|exceeds the maximum allowed length|maximum context length|greater than max_model_len|(available|max) context size/i;

/** Failures that an engine reports after it has sampled for a while. */
const AFTER_SAMPLING = /running timeout/i;

const MESSAGE_LIMIT = 300;

/** True if a server's message says that prompt and output do not fit the context. */
export function isPromptTooLongMessage(message: string): boolean {
  return PROMPT_TOO_LONG.test(message);
}

/**
 * Translates an HTTP status other than 200 into a failure. `message` is the server's own message,
 * from `readErrorMessage()`.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/entrypoints/http_server.py and
 * sgl-model-gateway/src (statuses, bodies, retries); vllm-project/vllm
 * vllm/entrypoints/serve/exception_handling and vllm/renderers/params.py; ggml-org/llama.cpp
 * tools/server/server-common.cpp (`format_error_response`).
 */
export function failureOfStatus(status: number, message: string): AttemptFailure {
  const problem = `HTTP ${status}${message === "" ? "" : ` (${message})`}`;
  if (status === 401 || status === 403) {
    const expected = "a valid apiKey";
    return { code: "engine/unauthorized", problem, expected, retry: false, maySample: false };
  }
  if (status === 429 || status === 503 || status === 408) {
    return {
      code: "engine/overloaded",
      problem,
      expected: "room in its queue",
      retry: true,
      maySample: AFTER_SAMPLING.test(message),
    };
  }
  if (status === 501) {
    const expected = "a server that supports the request";
    return { code: "engine/bad-request", problem, expected, retry: false, maySample: false };
  }
  if (status >= 500) {
    const expected = "HTTP 200";
    return { code: "engine/server-error", problem, expected, retry: true, maySample: true };
  }
  if (status >= 400) {
    const tooLong = isPromptTooLongMessage(message);
    return {
      code: tooLong ? "engine/prompt-too-long" : "engine/bad-request",
      problem,
      expected: tooLong ? "prompt and output to fit the context" : "a request that it accepts",
      retry: false,
      maySample: false,
    };
  }
  return { code: "engine/bad-reply", problem, expected: "HTTP 200", retry: false, maySample: true };
}

/** Translates an exchange without a complete reply into a failure. `deadlineMs` is its deadline. */
export function failureOfOutcome(
  outcome: Exclude<HttpOutcome, { type: "reply" }>,
  deadlineMs: number,
): AttemptFailure {
  if (outcome.type === "oversized") {
    return {
      code: "engine/bad-reply",
      problem: `the reply is longer than ${outcome.limitBytes} bytes`,
      expected: "a shorter one, or a higher maxReplyBytes",
      retry: false,
      maySample: true,
    };
  }
  if (outcome.type === "undecodable") {
    return {
      code: "engine/bad-reply",
      problem: `the reply cannot be decoded (${outcome.cause.message})`,
      expected: "a reply without Content-Encoding, as was requested; check the proxy in between",
      retry: false,
      maySample: true,
      cause: outcome.cause,
    };
  }
  if (outcome.type === "aborted") {
    return {
      code: "engine/timeout",
      problem: `no answer within ${Math.round(deadlineMs)} ms`,
      expected: "one in time",
      retry: true,
      maySample: outcome.sent,
    };
  }
  return {
    code: "engine/unreachable",
    problem: outcome.sent
      ? `the connection broke before the complete reply arrived (${outcome.cause.message})`
      : `no connection (${connectionProblem(outcome.cause)})`,
    expected: outcome.sent ? "a reply" : "a server there; is it running?",
    retry: true,
    maySample: outcome.sent,
    cause: outcome.cause,
  };
}

/**
 * Returns the message of a connection error. A host name with several addresses gives an
 * `AggregateError` with an empty message, so its first error is used.
 */
function connectionProblem(cause: Error): string {
  if (cause.message !== "") return cause.message;
  const inner: unknown = cause instanceof AggregateError ? cause.errors[0] : undefined;
  return inner instanceof Error ? inner.message : cause.name;
}

/**
 * Reads the server's message from the body of an error: `{"error": {"message"}}`, `{"message"}`,
 * `{"error": "…"}`, `{"detail"}`, or the text itself. Shortens it. `""` for an empty body.
 */
export function readErrorMessage(body: string): string {
  return shortLine(messageOf(body));
}

function messageOf(body: string): string {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return body;
  }
  if (typeof value === "string") return value;
  if (value === null || typeof value !== "object") return body;
  const { error, message, detail } = value as Record<string, unknown>;
  if (typeof error === "string") return error;
  if (error !== null && typeof error === "object") {
    const inner = (error as Record<string, unknown>)["message"];
    if (typeof inner === "string") return inner;
  }
  if (typeof message === "string") return message;
  return typeof detail === "string" ? detail : body;
}

function shortLine(text: string): string {
  return shorten(text.trim().replace(/\s+/g, " "), MESSAGE_LIMIT);
}
