import { digest } from "../tree/message-keys.ts";
import type { ReplyFeed } from "./reply-feed.ts";

/** So many replies of a session are kept for clients that ask again. */
const keptReplies = 16;

/** All of them but the newest are together no longer than this, in UTF-16 code units. */
const keptLength = 32 * 1024;

/**
 * Replies by what was asked for, for requests that say that they are made again. Others are sampled
 * anew: the same body alone is no sign, since a client may mean it.
 */
export class ReplyCache {
  readonly #feeds = new Map<string, ReplyFeed>();

  /** The reply to give once more; `undefined` where the request is not marked, or is not known. */
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

/** What a request is known by: its dialect, its idempotency key and the hash of its body. */
export function requestKey(dialect: string, headers: Headers, bodyHash: string): string {
  return digest(`${dialect}\n${bodyHash}\n${headers.get("idempotency-key") ?? ""}`);
}
