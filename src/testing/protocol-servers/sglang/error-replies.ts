import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";

/** The engine's error for a value that it refuses. */
export function sendValueError(exchange: HttpExchange, message: string): void {
  sendJson(exchange, { error: { message } }, { status: 400 });
}

/** The engine's error in its other shape: malformed requests, and failures of the scheduler. */
export function sendErrorResponse(
  exchange: HttpExchange,
  { status, message, type = String(status) }: { status: number; message: string; type?: string },
): void {
  sendJson(exchange, { object: "error", message, type, param: null, code: status }, { status });
}
