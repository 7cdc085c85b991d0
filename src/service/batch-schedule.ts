import type { Clock } from "../async/clock.ts";
import { attemptsOf } from "./batch-registry.ts";
import type { Batch } from "./batch.ts";

/**
 * The number of batches that play at the same time, so that the last attempts of one batch leave no capacity unused.
 */
const batchesAtOnce = 8;

/**
 * The largest number of concurrent small batches. Above `batchesAtOnce`, more of them start until their attempts
 * reach `concurrency`.
 */
const mostBatchesAtOnce = 512;

/** The limits of a schedule, and the functions that it calls. */
interface ScheduleOptions {
  /** Maximum number of concurrent attempts, over all batches. */
  readonly concurrency: number;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** If aborted, no further batch starts. */
  readonly stopped: AbortSignal;
  /** True if a batch may start now, or may be delivered as it is after its deadline. */
  readonly mayBegin: (batch: Batch) => boolean;
  /**
   * Plays the unfinished part of a batch. Must report its own problems and never reject. A batch that is still `queued`
   * afterwards keeps waiting.
   */
  readonly play: (batch: Batch) => Promise<void>;
  /** Called when a batch has stopped running. */
  readonly onRest: (batch: Batch) => void;
}

/** Starts batches in the order in which they were accepted, up to the limit of concurrent batches. */
export class BatchSchedule {
  readonly #options: ScheduleOptions;
  /** Accepted batches that have not started, oldest first. */
  #queue: Batch[] = [];
  readonly #playing = new Set<Batch>();

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  /** Resolves when no batch is running. */
  async rest(): Promise<void> {
    for (const batch of this.#playing) await batch.playing;
  }

  /** Adds a batch at the end of the queue, unless it has ended. Starts its deadline. */
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
      // No attempt of the batch is running, so it needs no place.
      if (this.#queue.includes(batch) && mayBegin(batch)) this.#begin(batch);
    });
  }

  /** Removes a batch that has not started. */
  drop(batch: Batch): void {
    this.#queue = this.#queue.filter((other) => other !== batch);
  }

  /** Starts the oldest batches that may play now, up to the limit. */
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
