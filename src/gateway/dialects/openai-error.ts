import type { ClientError, ClientErrorKind } from "../client-error.ts";

/** Encodes an error for OpenAI's clients. */
export function openAiError({ kind, message, place }: ClientError): object {
  const [type, code] = names[kind];
  return { error: { message, type, param: place ?? null, code } };
}

const names: Readonly<Record<ClientErrorKind, readonly [type: string, code: string | null]>> = {
  invalid: ["invalid_request_error", "invalid_request"],
  "too-long": ["invalid_request_error", "context_length_exceeded"],
  finished: ["turnwright_finished", "session_finished"],
  unauthorized: ["authentication_error", "invalid_api_key"],
  forbidden: ["permission_error", "forbidden"],
  "not-found": ["not_found_error", "not_found"],
  "too-large": ["invalid_request_error", "request_too_large"],
  "bad-encoding": ["invalid_request_error", "unsupported_content_encoding"],
  overloaded: ["rate_limit_error", "rate_limit_exceeded"],
  unavailable: ["server_error", "engine_unavailable"],
  internal: ["server_error", "internal_error"],
};
