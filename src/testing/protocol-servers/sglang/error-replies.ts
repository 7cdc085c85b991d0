import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";

/** Sends the engine's error for an invalid value. */
export function sendValueError(exchange: HttpExchange, message: string): void {
  sendJson(exchange, { error: { message } }, { status: 400 });
}

/**
 * Sends the engine's other form of errors, for malformed requests and failures of the scheduler.
 */
export function sendErrorResponse(
  exchange: HttpExchange,
  { status, message, type = String(status) }: { status: number; message: string; type?: string },
): void {
  sendJson(exchange, { object: "error", message, type, param: null, code: status }, { status });
}
