import type { Dispatcher, Pool } from "undici";
import type { ContentCodingError } from "../../http/content-coding.ts";
import { releaseBytes, acquireBytes } from "../../text/lent-bytes.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { utf8Bytes } from "../../text/utf8-bytes.ts";
import { loadPool } from "./load-pool.ts";
import type { ReplyHead } from "./reply-body.ts";
import { openBody } from "./reply-body.ts";
import { openReceiver, type ReplyReceiver } from "./reply-receiver.ts";

/** What to send. */
export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** Begins with a slash; appended to the path of the transport's own URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * JSON: its text, or that in UTF-8, which is sent as it is. Acquired bytes are released (see `acquireBytes()`)
   * once they are answered with HTTP 200: they are for one exchange.
   */
  readonly body?: string | Uint8Array;
  /**
   * Called with the data of each server-sent event of a stream that is answered with HTTP 200, as it
   * comes; the reply's text is empty then. What it throws ends the exchange.
   */
  readonly onEvent?: (data: string) => void;
  /** Bounds the wait. Where it aborts, the exchange's connection is dropped. */
  readonly signal: AbortSignal;
}

/** How an exchange ended. */
export type HttpOutcome =
  | HttpReply
  /** No whole reply came. `sent` is false only where no byte of the request was written. */
  | { readonly type: "broken"; readonly sent: boolean; readonly cause: Error }
  /** The reply exceeds the limit. */
  | { readonly type: "oversized"; readonly limitBytes: number }
  /** The reply is compressed in a way that is not read here, or its compressed bytes are broken. */
  | { readonly type: "undecodable"; readonly cause: ContentCodingError }
  /** The request's signal aborted. `sent` as above. */
  | { readonly type: "aborted"; readonly sent: boolean };

/** A whole reply, whatever its status. */
export interface HttpReply extends ReplyHead {
  readonly type: "reply";
  readonly text: string;
}

/** One server's connections. */
export interface HttpTransport {
  /** The server's address without a trailing slash. */
  readonly url: string;
  /**
   * Makes one HTTP exchange. Repeats nothing, follows no redirect.
   *
   * @throws what `onEvent` throws, and nothing else.
   */
  send(request: HttpRequest): Promise<HttpOutcome>;
  /** Drops all connections; exchanges under way end `broken`. */
  close(): Promise<void>;
}

/** Settings of a transport. */
interface HttpTransportOptions {
  /** Origin and, where the server lives under one, a path. */
  readonly url: string;
  /** Time for a connection to be made, in milliseconds. */
  readonly connectMs: number;
  /** Most connections at a time; further requests wait for one. */
  readonly maxConnections: number;
  /** Longest reply in bytes; of a stream, longest event. */
  readonly maxReplyBytes: number;
  /** How long an idle connection is kept, in milliseconds. Default 4 000. */
  readonly keepAliveMs?: number;
  /** Takes the key out of replies: careless servers and proxies repeat how they were asked. */
  readonly redactor: Redactor;
}

/**
 * The default of `keepAliveMs`. Below uvicorn's five seconds, which it does
 * not announce: a connection that the server closes just as a request goes out looks like a request
 * that may have been sampled.
 */
const KEEP_ALIVE_MS = 4_000;

/** Opens a pool of keep-alive connections to one server; connections are made when first needed. */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const { origin, pathname } = new URL(options.url);
  const basePath = pathname.replace(/\/+$/, "");
  const PoolOfLibrary = loadPool();
  const pool = new PoolOfLibrary(origin, {
    connections: options.maxConnections,
    keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
    connect: { timeout: options.connectMs },
    // A long generation sends nothing for minutes; the request's own signal is its deadline.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    url: origin + basePath,
    async send(request) {
      const outcome = await exchange(pool, request, {
        basePath,
        limitBytes: options.maxReplyBytes,
        redactor: options.redactor,
      });
      if (outcome.type !== "reply") return outcome;
      return { ...outcome, text: options.redactor.jsonText(outcome.text) };
    },
    close: () => pool.destroy(),
  };
}

function exchange(
  pool: Pool,
  request: HttpRequest,
  options: { basePath: string; limitBytes: number; redactor: Redactor },
): Promise<HttpOutcome> {
  const { signal } = request;
  const { basePath, limitBytes } = options;
  if (signal.aborted) return Promise.resolve({ type: "aborted", sent: false });
  return new Promise((resolve, reject) => {
    let sent = false;
    let controller: Dispatcher.DispatchController | undefined;
    const stopListening = (): void => signal.removeEventListener("abort", onAbort);
    const settle = (outcome: HttpOutcome): void => {
      stopListening();
      resolve(outcome);
    };
    const onAbort = (): void => {
      settle({ type: "aborted", sent });
      receiver?.destroy();
      controller?.abort(new Error("The request was cancelled"));
    };
    signal.addEventListener("abort", onAbort, { once: true });

    let status = 0;
    let headers: HttpReply["headers"] = {};
    let receiver: ReplyReceiver | undefined;
    const bytes = toBytes(request.body);
    const stop = (why: string): void => {
      receiver?.destroy();
      controller?.abort(new Error(why));
    };
    /** Runs what may throw what `onEvent` throws. */
    const orReject = (act: () => void): void => {
      try {
        act();
      } catch (error) {
        stopListening();
        reject(error);
        stop("The reply is refused");
      }
    };
    pool.dispatch(
      {
        method: request.method,
        path: basePath + request.path,
        headers: {
          // Without this, a server may answer in any coding.
          "accept-encoding": "identity",
          ...(request.body !== undefined && { "content-type": "application/json" }),
          ...request.headers,
        },
        body: bytes,
      },
      {
        // Called when a connection is free and the request is about to be written to it.
        onRequestStart(started) {
          controller = started;
          if (signal.aborted) started.abort(new Error("The request was cancelled"));
          else sent = true;
        },
        onResponseStart(started, statusCode, replyHeaders) {
          status = statusCode;
          headers = replyHeaders;
          const body = openBody({ status, headers }, { ...options, onEvent: request.onEvent });
          receiver = openReceiver(headers, {
            onPiece(piece) {
              // What comes after the end of an exchange is not passed on.
              if (signal.aborted) return;
              orReject(() => {
                if (body.add(piece) !== "too-long") return;
                settle({ type: "oversized", limitBytes });
                stop("The reply is too long");
              });
            },
            onDrain: () => started.resume(),
            onEnd(cause) {
              if (cause === undefined) {
                // A server that refuses a request may not have read all of it.
                if (status === 200 && bytes !== null) releaseBytes(bytes);
                try {
                  settle({ type: "reply", status, headers, text: body.end() });
                } catch (error) {
                  settle({ type: "broken", sent, cause: error as Error });
                }
                return;
              }
              settle({ type: "undecodable", cause });
              stop("The reply cannot be decoded");
            },
          });
        },
        onResponseData(receiving, chunk) {
          if (receiver?.write(chunk) === false) receiving.pause();
        },
        onResponseEnd() {
          receiver?.end();
        },
        onResponseError(_controller, cause) {
          receiver?.destroy();
          settle({ type: "broken", sent, cause });
        },
      },
    );
  });
}

/** A text is made into bytes at once: the HTTP library would go over it three times. */
function toBytes(body: HttpRequest["body"]): Uint8Array | null {
  return typeof body === "string" ? utf8Bytes(body, acquireBytes) : (body ?? null);
}
