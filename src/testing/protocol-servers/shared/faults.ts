import type { ServerFault } from "../server-fault.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { sendJson, sendText } from "./http-exchange.ts";
import type { ForcedEnd } from "./request-scheduler.ts";
import type { SequenceRequest } from "./sequence-request.ts";

/** Sends the fault's reply if the fault is a complete reply. Returns true if a reply was sent. */
export function answerWithFault(exchange: HttpExchange, fault: ServerFault | undefined): boolean {
  switch (fault?.kind) {
    case "status": {
      const { status, body = "", headers = {} } = fault;
      if (typeof body === "string") sendText(exchange, body, { status, headers });
      else sendJson(exchange, body, { status, headers });
      return true;
    }
    case "reset":
      if ((fault.when ?? "at-once") !== "at-once") return false;
      exchange.request.socket.resetAndDestroy();
      return true;
    case "html":
      sendText(exchange, "<html><body>It works!</body></html>", {
        headers: { "content-type": "text/html" },
      });
      return true;
    case "hang":
      return true;
    default:
      return false;
  }
}

/** Returns the end that a fault forces on a sequence. */
export function toForcedEnd(
  fault: ServerFault | undefined,
  { stopTokenIds }: SequenceRequest,
): ForcedEnd | undefined {
  switch (fault?.kind) {
    case "abort-after": {
      const { tokens: afterTokens, status, message = "Aborted" } = fault;
      const finish = { type: "abort" as const, message, status_code: status ?? null };
      return { afterTokens, finish };
    }
    case "abort-in-queue":
      return {
        afterTokens: 0,
        inQueue: true,
        finish: { type: "abort", message: "Abort in waiting queue" },
      };
    case "nan-happened":
      return {
        afterTokens: fault.afterTokens + 1,
        finish: { type: "stop", matched: "NaN happened" },
        replaceLastBy: stopTokenIds[0] ?? 0,
      };
    default:
      return undefined;
  }
}

/**
 * Ends a stream in its middle if the fault demands that. Returns true if the stream was ended. The client receives the
 * bytes before the end, as with a proxy that fails.
 */
export function breakStream(
  exchange: HttpExchange,
  fault: ServerFault | undefined,
  sentCount: number,
): boolean {
  if (fault?.kind !== "reset" || fault.when !== "within-reply") return false;
  if (sentCount < (fault.afterTokens ?? 1)) return false;
  exchange.request.socket.end();
  return true;
}

/** Sends a sampled reply, changed by the fault. */
export function sendReply(
  exchange: HttpExchange,
  reply: Record<string, unknown> | readonly unknown[],
  fault: ServerFault | undefined,
  init: { readonly headers?: Readonly<Record<string, string>> } = {},
): void {
  switch (fault?.kind) {
    case "reset": {
      if (fault.when === "after-sampling") {
        exchange.request.socket.resetAndDestroy();
        return;
      }
      const text = JSON.stringify(reply);
      exchange.response.writeHead(200, { "content-length": Buffer.byteLength(text) });
      exchange.response.write(text.slice(0, text.length / 2), () =>
        exchange.request.socket.resetAndDestroy(),
      );
      return;
    }
    case "truncated-json": {
      const text = JSON.stringify(reply);
      sendText(exchange, text.slice(0, text.length / 2));
      return;
    }
    case "alter":
      sendJson(exchange, Array.isArray(reply) ? reply : fault.alter({ ...reply }), init);
      return;
    default:
      sendJson(exchange, reply, init);
  }
}
