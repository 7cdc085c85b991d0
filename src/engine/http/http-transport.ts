import type { Dispatcher, Pool } from "undici";
import type { ContentCodingError } from "../../http/content-coding.ts";
import { releaseBytes, acquireBytes } from "../../text/lent-bytes.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { utf8Bytes } from "../../text/utf8-bytes.ts";
import { loadPool } from "./load-pool.ts";
import type { ReplyHead } from "./reply-body.ts";
import type { BlobCutter, BlobReader } from "./blob-cutter.ts";
import type { BodyBytes } from "./byte-parts.ts";
import { openBody } from "./reply-body.ts";
import { openReceiver, type ReplyReceiver } from "./reply-receiver.ts";

/** One HTTP request. */
export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** The path. It starts with a slash, and is appended to the path of the transport's URL. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The body: JSON as text or in UTF-8. Lent bytes (`acquireBytes()`) are returned to the pool after HTTP 200, so they
   * serve one exchange.
   */
  readonly body?: string | BodyBytes;
  /**
   * Called with the data of each server-sent event as it arrives, if the status is 200. The reply's text is then empty.
   * An error that this function throws ends the exchange.
   */
  readonly onEvent?: (data: string) => void;
  /** Cuts long texts out of the reply. An error of one of its readers ends the exchange. */
  readonly cutter?: BlobCutter<BlobReader> | undefined;
  /** Bounds the wait. When the signal aborts, the connection is dropped. */
  readonly signal: AbortSignal;
}

/** The result of an exchange. */
export type HttpOutcome =
  | HttpReply
  /**
   * The reply did not arrive completely. `sent` is false only if no byte of the request was
   * written.
   */
  | { readonly type: "broken"; readonly sent: boolean; readonly cause: Error }
  /** The reply exceeds the limit. */
  | { readonly type: "oversized"; readonly limitBytes: number }
  /** The reply has an unknown compression, or its compressed bytes are damaged. */
  | { readonly type: "undecodable"; readonly cause: ContentCodingError }
  /** The request's signal aborted. `sent` as for `broken`. */
  | { readonly type: "aborted"; readonly sent: boolean };

/** A complete reply of any status. */
export interface HttpReply extends ReplyHead {
  readonly type: "reply";
  readonly text: string;
}

/** The connections to one server. */
export interface HttpTransport {
  /** The server's address without a trailing slash. */
  readonly url: string;
  /**
   * Makes one HTTP exchange. Repeats nothing, follows no redirect.
   *
   * @throws only errors that `onEvent` and the cutter's readers throw.
   */
  send(request: HttpRequest): Promise<HttpOutcome>;
  /** Drops all connections. Pending exchanges end as `broken`. */
  close(): Promise<void>;
}

/** Settings of a transport. */
interface HttpTransportOptions {
  /** The server's origin, and a path if the server uses one. */
  readonly url: string;
  /** Time to open a connection, in milliseconds. */
  readonly connectMs: number;
  /** Maximum number of connections. Further requests wait for one. */
  readonly maxConnections: number;
  /** Maximum length in bytes of a reply, or of one event of a stream. */
  readonly maxReplyBytes: number;
  /** Time that an idle connection stays open, in milliseconds. Default 4 000. */
  readonly keepAliveMs?: number;
  /** Removes the API key from replies, because some servers and proxies echo the request. */
  readonly redactor: Redactor;
}

/**
 * The default of `keepAliveMs`.
 *
 * It is below uvicorn's five seconds, which uvicorn does not announce. If the server closes a
 * connection while a request is on its way, the request may have been sampled.
 */
const KEEP_ALIVE_MS = 4_000;

/** Creates a pool of keep-alive connections to one server. Connections are opened when needed. */
export function createHttpTransport(options: HttpTransportOptions): HttpTransport {
  const { origin, pathname } = new URL(options.url);
  const basePath = pathname.replace(/\/+$/, "");
  const PoolOfLibrary = loadPool();
  const pool = new PoolOfLibrary(origin, {
    connections: options.maxConnections,
    keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
    connect: { timeout: options.connectMs },
    // A long generation sends nothing for minutes. The request's own signal is its deadline.
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
    /** Runs `act` and rejects with an error that `onEvent` or the cutter throws. */
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
          // Without this header, a server may use any coding.
          "accept-encoding": "identity",
          ...(request.body !== undefined && { "content-type": "application/json" }),
          ...(bytes !== null && { "content-length": String(bytes.byteLength) }),
          ...request.headers,
        },
        // The library sends any iterable in parts.
        body: bytes as Uint8Array | null,
      },
      {
        // Called just before the request is written to a free connection.
        onRequestStart(started) {
          controller = started;
          if (signal.aborted) started.abort(new Error("The request was cancelled"));
          else sent = true;
        },
        onResponseStart(started, statusCode, replyHeaders) {
          status = statusCode;
          headers = replyHeaders;
          const body = openBody(
            { status, headers },
            {
              ...options,
              onEvent: request.onEvent,
              cutter: request.cutter,
            },
          );
          receiver = openReceiver(headers, {
            onPiece(piece) {
              // Data that arrives after the end of an exchange is dropped.
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
                // After a refusal, the server may not have read all of the request.
                if (status === 200 && bytes instanceof Uint8Array) releaseBytes(bytes);
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

/** Converts a text to bytes once. The HTTP library would process a text three times. */
function toBytes(body: HttpRequest["body"]): BodyBytes | null {
  return typeof body === "string" ? utf8Bytes(body, acquireBytes) : (body ?? null);
}
