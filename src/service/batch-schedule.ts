import type { Clock } from "../async/clock.ts";
import { attemptsOf } from "./batch-registry.ts";
import type { Batch } from "./batch.ts";

/** Batches that are played at once, so that the last attempts of one leave no place empty. */
const batchesAtOnce = 8;

/** Where batches are small, more of them, until as many attempts wait as have a place; no more than this. */
const mostBatchesAtOnce = 512;

/** What a schedule needs of the service around it. */
interface ScheduleOptions {
  /** Attempts at once, over all batches. */
  readonly concurrency: number;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Aborted, no further batch is begun. */
  readonly stopped: AbortSignal;
  /** Whether a batch may be played by now, or told as it is where it is late. */
  readonly mayBegin: (batch: Batch) => boolean;
  /** Plays what is left of a batch, to be told of all trouble itself; never rejects. Left `queued`, it waits on. */
  readonly play: (batch: Batch) => Promise<void>;
  /** Told when a batch has come to rest. */
  readonly onRest: (batch: Batch) => void;
}

/** Begins batches in the order in which they were accepted, as far as there are places. */
export class BatchSchedule {
  readonly #options: ScheduleOptions;
  /** Accepted and not begun, oldest first. */
  #queue: Batch[] = [];
  readonly #playing = new Set<Batch>();

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  /** Resolves when nothing that was begun is played any more. */
  async rest(): Promise<void> {
    for (const batch of this.#playing) await batch.playing;
  }

  /** Puts a batch behind the others, unless it has ended meanwhile. Its deadline begins to count. */
  add(batch: Batch): void {
    if (batch.hasEnded) return;
    this.#queue.push(batch);
    const { clock, mayBegin, now, stopped } = this.#options;
    const { deadlineS } = batch.request;
    if (deadlineS === undefined || stopped.aborted) return;
    const restMs = batch.atMs + deadlineS * 1000 - now();
    batch.callOff = clock.after(Math.max(0, restMs), () => {
      batch.isLate = true;
      batch.stop.abort(new DOMException("the batch's deadline is over", "TimeoutError"));
      // Nothing of it is played any more, so it needs no place.
      if (this.#queue.includes(batch) && mayBegin(batch)) this.#begin(batch);
    });
  }

  /** Takes a batch out that was not begun. */
  drop(batch: Batch): void {
    this.#queue = this.#queue.filter((other) => other !== batch);
  }

  /** Begins the oldest batches that may be played, as far as there are places. */
  advance(): void {
    const { stopped, mayBegin } = this.#options;
    for (const batch of Array.from(this.#queue)) {
      if (this.#isFull || stopped.aborted) return;
      if (mayBegin(batch)) this.#begin(batch);
    }
  }

  get #isFull(): boolean {
    const { size } = this.#playing;
    if (size < batchesAtOnce) return false;
    return size >= mostBatchesAtOnce || attemptsOf(this.#playing) >= 2 * this.#options.concurrency;
  }

  #begin(batch: Batch): void {
    const { stopped, play, onRest } = this.#options;
    if (stopped.aborted || batch.hasEnded) return;
    this.drop(batch);
    batch.state = "running";
    batch.reason = undefined;
    this.#playing.add(batch);
    batch.playing = play(batch).finally(() => {
      this.#playing.delete(batch);
      if (batch.state === "queued") this.#queue.push(batch);
      onRest(batch);
      this.advance();
    });
  }
}
