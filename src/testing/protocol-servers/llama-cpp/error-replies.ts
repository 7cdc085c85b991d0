import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";

/** The kinds of failure in llama.cpp's server, with their statuses. */
const STATUSES = {
  invalid_request_error: 400,
  exceed_context_size_error: 400,
  authentication_error: 401,
  not_found_error: 404,
  server_error: 500,
  unavailable_error: 503,
} as const;

/** The content type of its replies. */
export const JSON_UTF8 = { headers: { "content-type": "application/json; charset=utf-8" } };

/** The body of an error reply. */
export interface LlamaCppError {
  readonly type: keyof typeof STATUSES;
  readonly message: string;
  /** Further fields. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A request that the server refuses before it runs. */
export class RequestRefused extends Error {
  readonly error: LlamaCppError;

  constructor(error: LlamaCppError) {
    super(error.message);
    this.error = error;
  }
}

/**
 * Answers with an error.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-common.cpp (`format_error_response`).
 */
export function sendError(exchange: HttpExchange, { type, message, details }: LlamaCppError): void {
  const status = STATUSES[type];
  const body = { error: { code: status, message, type, ...details } };
  sendJson(exchange, body, { status, ...JSON_UTF8 });
}

/** The refusal of a value. */
export function invalid(message: string): RequestRefused {
  return new RequestRefused({ type: "invalid_request_error", message });
}
