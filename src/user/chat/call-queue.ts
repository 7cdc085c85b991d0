/** Settings of `createCallQueue()`. */
interface CallQueueOptions {
  /** Maximum number of calls in progress. At least 1. */
  readonly maxConcurrent: number;
  /** Maximum number of waiting calls. At least 0. */
  readonly maxWaiting: number;
  /** Returns the error for a call that finds the queue full. */
  readonly onFull: () => Error;
}

/** Limits the number of concurrent calls. Waiting calls start in order of arrival. */
export interface CallQueue {
  /**
   * Waits for a turn, then runs the call.
   *
   * @throws the error of `onFull` if too many calls wait, the signal's reason if it is aborted
   *   while waiting, and every error of the call.
   */
  run<Result>(call: () => Promise<Result>, options: { signal: AbortSignal }): Promise<Result>;
}

/** Creates a queue. See `CallQueue`. */
export function createCallQueue({
  maxConcurrent,
  maxWaiting,
  onFull,
}: CallQueueOptions): CallQueue {
  // A set keeps the order of arrival and allows cheap removal after an abort.
  const waiting = new Set<() => void>();
  let runningCount = 0;

  function takeTurn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (runningCount < maxConcurrent) {
      runningCount += 1;
      return Promise.resolve();
    }
    if (waiting.size >= maxWaiting) throw onFull();
    return new Promise((resolve, reject) => {
      function abandon(): void {
        waiting.delete(start);
        reject(signal.reason as Error);
      }
      function start(): void {
        signal.removeEventListener("abort", abandon);
        resolve();
      }
      waiting.add(start);
      signal.addEventListener("abort", abandon, { once: true });
    });
  }

  function passTurn(): void {
    const [next] = waiting;
    if (next === undefined) {
      runningCount -= 1;
      return;
    }
    // The place passes directly to the next call, so that a new call cannot take it.
    waiting.delete(next);
    next();
  }

  return {
    async run(call, { signal }) {
      await takeTurn(signal);
      try {
        return await call();
      } finally {
        passTurn();
      }
    },
  };
}
