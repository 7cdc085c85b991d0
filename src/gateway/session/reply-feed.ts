import { withResolvers } from "../../async/with-resolvers.ts";

/** The status and the headers of a reply's HTTP response. */
interface ReplyHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Callbacks for the delivery of a reply. */
interface FeedReader {
  /** Called once, when a reader has received the complete reply. */
  onDelivered(): void;
  /** Called when the last reader has left and none has received the complete reply. */
  onAbandoned(): void;
}

/** Maximum size of the unread part of a reply per reader, in bytes. */
export const maxQueuedLength = 1024 * 1024;

/** Options of a reader. */
interface ReaderOptions {
  /** Cuts the connection of a reader that is too slow. Default: its stream fails. */
  readonly onCut?: () => void;
}

/**
 * A reply that is written once and can be read several times: by the client that requested it, and
 * by retries during or after sampling. A slow reader does not delay others; it is cut off when its
 * unread part exceeds the maximum.
 */
export class ReplyFeed {
  readonly #chunks: string[] = [];
  readonly #head = withResolvers<ReplyHead>();
  readonly #readers = new Set<Reader>();
  readonly #listener: FeedReader;
  #isDone = false;
  #isDelivered = false;
  #length = 0;

  constructor(listener: FeedReader) {
    this.#listener = listener;
    // A failure must not become an unhandled rejection when the feed has no reader.
    this.#head.promise.catch(() => {});
  }

  /** The start of the reply. Rejects if the request is refused. */
  get head(): Promise<ReplyHead> {
    return this.#head.promise;
  }

  /** Length so far, in UTF-16 code units. */
  get length(): number {
    return this.#length;
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  begin(head: ReplyHead): void {
    this.#head.resolve(head);
  }

  /** Ends a feed that has not started. */
  refuse(error: unknown): void {
    this.#isDone = true;
    this.#head.reject(error);
  }

  write(chunk: string): void {
    if (chunk === "") return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (const reader of this.#readers) this.#notify(reader, chunk);
  }

  /** Marks the reply as complete. */
  end(): void {
    this.#isDone = true;
    // A reader that has received everything may never pull again, because clients stop at a reply's
    // last event.
    for (const reader of this.#readers) {
      if (reader.position === this.#chunks.length) this.#serve(reader);
    }
  }

  /** Opens a stream of the complete reply from its start. */
  open({ onCut }: ReaderOptions = {}): ReadableStream<Uint8Array> {
    let own: Reader;
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = { controller, onCut, position: 0, waitingLength: 0, isPulling: false };
          this.#readers.add(own);
        },
        pull: () => this.#serve(own),
        cancel: () => this.#leave(own),
      },
      // Without a buffer in the stream, the feed knows what the reader has received.
      { highWaterMark: 0 },
    );
  }

  /** Sends the pending text to a reader that pulls. */
  #serve(reader: Reader): void {
    const { controller, position } = reader;
    const hasPending = position < this.#chunks.length;
    reader.isPulling = !hasPending && !this.#isDone;
    if (hasPending) controller.enqueue(encoder.encode(this.#chunks.slice(position).join("")));
    [reader.position, reader.waitingLength] = [this.#chunks.length, 0];
    if (!this.#isDone) return;
    controller.close();
    this.#readers.delete(reader);
    if (this.#isDelivered) return;
    this.#isDelivered = true;
    this.#listener.onDelivered();
  }

  #notify(reader: Reader, chunk: string): void {
    if (reader.isPulling) {
      this.#serve(reader);
      return;
    }
    // A single piece may exceed the maximum, because a complete reply is one.
    if (reader.waitingLength < maxQueuedLength) {
      reader.waitingLength += Buffer.byteLength(chunk);
      return;
    }
    if (reader.onCut === undefined) {
      reader.controller.error(new Error("The reader of the stream is too slow"));
    } else {
      reader.onCut();
    }
    this.#leave(reader);
  }

  #leave(reader: Reader): void {
    if (!this.#readers.delete(reader)) return;
    if (this.#readers.size === 0 && !this.#isDelivered) this.#listener.onAbandoned();
  }
}

interface Reader {
  readonly controller: ReadableStreamDefaultController<Uint8Array>;
  readonly onCut: (() => void) | undefined;
  /** Number of pieces that it has received. */
  position: number;
  /** Size of the pending text in bytes. */
  waitingLength: number;
  /** True if it has received everything and pulls for more. */
  isPulling: boolean;
}

const encoder = new TextEncoder();
