import { withResolvers } from "../../async/with-resolvers.ts";

/** How a reply begins. */
interface ReplyHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** What becomes of a reply. */
interface FeedReader {
  /** Somebody has read the reply to its end. Told once. */
  onDelivered(): void;
  /** Nobody reads any more, and nobody has the reply whole. */
  onAbandoned(): void;
}

/** When so much of a reply waits for a reader, nothing more is kept for it, in bytes. */
export const maxQueuedLength = 1024 * 1024;

/** How a reader is served. */
interface ReaderOptions {
  /** Ends the connection of a reader that is too slow. Default: its stream fails. */
  readonly onCut?: () => void;
}

/**
 * A reply as it is written, for whoever reads it: the client that asked, and one that asks again for
 * the same while it is under way or afterwards. A slow reader slows nobody: what it leaves waiting is
 * bounded, and it is cut off beyond that.
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
    for (const reader of this.#readers) this.#offer(reader, chunk);
  }

  /** The reply is whole. */
  end(): void {
    this.#isDone = true;
    // Who has everything need not ask once more: clients know a reply's last event.
    for (const reader of this.#readers) {
      if (reader.place === this.#chunks.length) this.#serve(reader);
    }
  }

  /** A stream of the whole reply, from its beginning on. */
  open({ onCut }: ReaderOptions = {}): ReadableStream<Uint8Array> {
    let own: Reader;
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = { controller, onCut, place: 0, waitingLength: 0, isAsking: false };
          this.#readers.add(own);
        },
        pull: () => this.#serve(own),
        cancel: () => this.#leave(own),
      },
      // What waits stays here, and so it is known what a reader has.
      { highWaterMark: 0 },
    );
  }

  /** Gives a reader that asks what there is. */
  #serve(reader: Reader): void {
    const { controller, place } = reader;
    const isSomething = place < this.#chunks.length;
    reader.isAsking = !isSomething && !this.#isDone;
    if (isSomething) controller.enqueue(encoder.encode(this.#chunks.slice(place).join("")));
    [reader.place, reader.waitingLength] = [this.#chunks.length, 0];
    if (!this.#isDone) return;
    controller.close();
    this.#readers.delete(reader);
    if (this.#isDelivered) return;
    this.#isDelivered = true;
    this.#listener.onDelivered();
  }

  #offer(reader: Reader, chunk: string): void {
    if (reader.isAsking) {
      this.#serve(reader);
      return;
    }
    // A piece of any size may wait: a whole reply is one.
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
  /** How many pieces it has. */
  place: number;
  /** How much was written since it asked last, in bytes. */
  waitingLength: number;
  /** Whether it has everything, and wants more. */
  isAsking: boolean;
}

const encoder = new TextEncoder();
