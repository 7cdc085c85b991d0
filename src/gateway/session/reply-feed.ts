import { withResolvers } from "../../internal/with-resolvers.ts";

/** How a reply begins. */
export interface ReplyHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a reader of a feed does with its end. */
export interface FeedReader {
  /** The reply is with the reader whole. */
  onDelivered(): void;
  /** Nobody reads any more, and the reply is not whole. */
  onAbandoned(): void;
}

/** When so much of a reply waits for a reader, nothing more is kept for it, in bytes. */
export const maxQueuedLength = 1024 * 1024;

/**
 * A reply as it is written, for whoever reads it: the client that asked, and one that asks again for
 * the same while it is under way or afterwards. A slow reader slows nobody: what it leaves waiting is
 * bounded, and it is cut off beyond that.
 */
export class ReplyFeed {
  readonly #chunks: string[] = [];
  readonly #head = withResolvers<ReplyHead>();
  readonly #readers = new Set<ReadableStreamDefaultController<Uint8Array>>();
  readonly #listener: FeedReader;
  #isDone = false;
  #length = 0;

  constructor(listener: FeedReader) {
    this.#listener = listener;
    // Whoever opens the feed hears of a failure; nobody has to.
    this.#head.promise.catch(() => {});
  }

  /** The reply's beginning. Rejects where there is none. */
  get head(): Promise<ReplyHead> {
    return this.#head.promise;
  }

  /** In UTF-16 code units, as far as it is written. */
  get length(): number {
    return this.#length;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  begin(head: ReplyHead): void {
    this.#head.resolve(head);
  }

  /** Ends a feed that was never begun. */
  refuse(error: unknown): void {
    this.#isDone = true;
    this.#head.reject(error);
  }

  write(chunk: string): void {
    if (chunk === "") return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (const reader of this.#readers) this.#hand(reader, chunk);
  }

  /** The reply is whole. */
  end(): void {
    this.#isDone = true;
    for (const reader of this.#readers) reader.close();
    if (this.#readers.size > 0) this.#listener.onDelivered();
    this.#readers.clear();
  }

  /** A stream of the whole reply, from its beginning on. */
  open(): ReadableStream<Uint8Array> {
    let own: ReadableStreamDefaultController<Uint8Array>;
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = controller;
          for (const chunk of this.#chunks) controller.enqueue(encoder.encode(chunk));
          if (!this.#isDone) this.#readers.add(controller);
          else {
            controller.close();
            this.#listener.onDelivered();
          }
        },
        cancel: () => this.#leave(own),
      },
      { highWaterMark: maxQueuedLength, size: (chunk) => chunk.byteLength },
    );
  }

  #hand(reader: ReadableStreamDefaultController<Uint8Array>, chunk: string): void {
    // A piece of any size may wait: a whole reply is one.
    if ((reader.desiredSize ?? 0) > 0) {
      reader.enqueue(encoder.encode(chunk));
      return;
    }
    reader.error(new Error("The reader of the stream is too slow"));
    this.#leave(reader);
  }

  #leave(reader: ReadableStreamDefaultController<Uint8Array>): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.#listener.onAbandoned();
  }
}

const encoder = new TextEncoder();
