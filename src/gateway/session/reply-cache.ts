import { digest } from "../tree/message-keys.ts";
import type { ReplyFeed } from "./reply-feed.ts";

/** Maximum number of kept replies of a session. */
const keptReplies = 16;

/** Maximum total length of the kept replies except the newest, in UTF-16 code units. */
const keptLength = 32 * 1024;

/**
 * Keeps replies for requests that are marked as retries. An unmarked request with an equal body is
 * sampled again, because the client may want another sample.
 */
export class ReplyCache {
  readonly #feeds = new Map<string, ReplyFeed>();

  /**
   * Returns the kept reply, or `undefined` if the request is not marked as a retry or is unknown.
   */
  find(headers: Headers, request: string): ReplyFeed | undefined {
    return isMarked(headers) ? this.#feeds.get(request) : undefined;
  }

  keep(request: string, feed: ReplyFeed): void {
    this.#feeds.delete(request);
    this.#feeds.set(request, feed);
    let length = 0;
    for (const each of this.#feeds.values()) length += each.length;
    for (const [oldest, { length: own }] of this.#feeds) {
      if (oldest === request) break;
      if (this.#feeds.size <= keptReplies && length <= keptLength) break;
      this.#feeds.delete(oldest);
      length -= own;
    }
  }

  forget(request: string, feed: ReplyFeed): void {
    if (this.#feeds.get(request) === feed) this.#feeds.delete(request);
  }
}

function isMarked(headers: Headers): boolean {
  return Number(headers.get("x-stainless-retry-count") ?? 0) > 0 || headers.has("idempotency-key");
}

/** Returns the key of a request: a hash of its dialect, idempotency key and body hash. */
export function requestKey(dialect: string, headers: Headers, bodyHash: string): string {
  return digest(`${dialect}\n${bodyHash}\n${headers.get("idempotency-key") ?? ""}`);
}
