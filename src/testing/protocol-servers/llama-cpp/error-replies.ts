import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";

/** The HTTP statuses of llama.cpp's kinds of errors. */
const STATUSES = {
  invalid_request_error: 400,
  exceed_context_size_error: 400,
  authentication_error: 401,
  not_found_error: 404,
  server_error: 500,
  unavailable_error: 503,
} as const;

/** The content type of llama.cpp's replies. */
export const JSON_UTF8 = { headers: { "content-type": "application/json; charset=utf-8" } };

/** The body of an error reply. */
export interface LlamaCppError {
  readonly type: keyof typeof STATUSES;
  readonly message: string;
  /** Further fields. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Thrown for a request that the server refuses before it runs. */
export class RequestRefused extends Error {
  readonly error: LlamaCppError;

  constructor(error: LlamaCppError) {
    super(error.message);
    this.error = error;
  }
}

/**
 * Sends an error reply.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-common.cpp (`format_error_response`).
 */
export function sendError(exchange: HttpExchange, { type, message, details }: LlamaCppError): void {
  const status = STATUSES[type];
  const body = { error: { code: status, message, type, ...details } };
  sendJson(exchange, body, { status, ...JSON_UTF8 });
}

/** Returns the error for an invalid value. */
export function invalid(message: string): RequestRefused {
  return new RequestRefused({ type: "invalid_request_error", message });
}
