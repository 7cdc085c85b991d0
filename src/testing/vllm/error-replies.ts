import type { HttpExchange } from "../server/http-exchange.ts";
import { sendJson } from "../server/http-exchange.ts";

/** What vLLM says of a failure. */
export interface VllmError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param?: string;
}

/** A request that the server refuses before it is queued. */
export class RequestRefused extends Error {
  readonly error: VllmError;

  constructor(error: VllmError) {
    super(error.message);
    this.error = error;
  }
}

/** The body of an error. */
export function encodeError({ status, message, type, param }: VllmError): unknown {
  return { error: { message, type, param: param ?? null, code: status } };
}

/** Answers with an error. */
export function sendError(exchange: HttpExchange, error: VllmError): void {
  sendJson(exchange, encodeError(error), { status: error.status });
}

/** A value that the engine refuses; the message ends with the parameter where it names one. */
export function badRequest(
  message: string,
  { parameter, value }: { parameter?: string; value?: string } = {},
): VllmError {
  const type = "BadRequestError";
  if (parameter === undefined) return { status: 400, message, type };
  const details = value === undefined ? "" : `, value=${value}`;
  const text = `${message} (parameter=${parameter}${details})`;
  return { status: 400, message: text, type, param: parameter };
}

/** A body that is not of the request's shape. */
export function badShape(param: string, message: string): VllmError {
  const text = `1 validation error:\n  ${message}`;
  return { status: 400, message: text, type: "Bad Request", param: `body.${param}` };
}

/** Answers for a path, or a method of a path, that the server does not have. */
export function sendNoSuchRoute(exchange: HttpExchange, status: 404 | 405): void {
  const detail = status === 404 ? "Not Found" : "Method Not Allowed";
  sendJson(exchange, { detail }, { status });
}
