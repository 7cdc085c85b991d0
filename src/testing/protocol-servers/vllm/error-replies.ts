import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";

/** The body of an error reply. */
export interface VllmError {
  readonly status: number;
  readonly message: string;
  readonly type: string;
  readonly param?: string;
}

/** Thrown for a request that the server refuses before it is queued. */
export class RequestRefused extends Error {
  readonly error: VllmError;

  constructor(error: VllmError) {
    super(error.message);
    this.error = error;
  }
}

/** Encodes the body of an error reply. */
export function encodeError({ status, message, type, param }: VllmError): unknown {
  return { error: { message, type, param: param ?? null, code: status } };
}

/** Sends an error reply. */
export function sendError(exchange: HttpExchange, error: VllmError): void {
  sendJson(exchange, encodeError(error), { status: error.status });
}

/**
 * Returns the error for an invalid value. The message ends with the parameter if the engine names
 * it.
 */
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

/** One problem of a body's structure. */
export interface ShapeProblem {
  /** The validator's name for the problem, such as `missing`. */
  readonly kind: string;
  /** The place in the body. */
  readonly at: string;
  readonly message: string;
  /** The value, as Python prints it. */
  readonly input: string;
  /** Further details, in Python's words. */
  readonly details?: string;
}

/**
 * Returns the error for a body with another structure than the request's.
 *
 * **Source:** recorded from vLLM 0.32.0.
 */
export function badShape(first: ShapeProblem, ...others: readonly ShapeProblem[]): VllmError {
  const problems = [first, ...others];
  const lines = problems.map(({ kind, at, message, input, details }) => {
    const context = details === undefined ? "" : `, 'ctx': {${details}}`;
    return `\n  {'type': '${kind}', 'loc': '${toLocation(at)}', 'msg': '${message}', 'input': ${input}${context}}`;
  });
  const count = `${problems.length} validation error${problems.length === 1 ? "" : "s"}`;
  const message = `${count}:${lines.join("")}`;
  return { status: 400, message, type: "Bad Request", param: toLocation(first.at) };
}

function toLocation(at: string): string {
  return at === "" ? "body" : `body.${at}`;
}

/** Returns the error for a missing member. */
export function missing(at: string, { memberCount }: { memberCount: number }): VllmError {
  const input = `'<dict of ${memberCount} items>'`;
  return badShape({ kind: "missing", at, message: "Field required", input });
}

/** Answers a request for a path that the server's options disable. */
export function sendDisabled(exchange: HttpExchange): void {
  const message =
    "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.";
  sendError(exchange, { status: 403, message, type: "PermissionDeniedError" });
}

/** Formats a value like Python, as the server's validator does. */
export function toPython(value: unknown): string {
  if (Array.isArray(value)) return `'<list of ${value.length} items>'`;
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "object") return `'<dict of ${Object.keys(value).length} items>'`;
  return typeof value === "number" ? `${value}` : `'${value as string}'`;
}

/** Answers a request for a path or method that the server does not have. */
export function sendNoSuchRoute(exchange: HttpExchange, status: 404 | 405): void {
  const detail = status === 404 ? "Not Found" : "Method Not Allowed";
  sendJson(exchange, { detail }, { status });
}
