/** Settings of `createCallQueue()`. */
interface CallQueueOptions {
  /** Calls in progress at once; at least 1. */
  readonly maxConcurrent: number;
  /** Calls waiting for their turn; at least 0. */
  readonly maxWaiting: number;
  /** What to throw at the call that finds the queue full. */
  readonly onFull: () => Error;
}

/** Lets a bounded number of calls through at once, first come, first served. */
export interface CallQueue {
  /**
   * Waits for a turn, then runs the call.
   *
   * @throws what `onFull` returns where too many wait, the signal's reason where it is aborted
   *   while waiting, and whatever the call throws.
   */
  run<Result>(call: () => Promise<Result>, options: { signal: AbortSignal }): Promise<Result>;
}

/** Creates a queue; see `CallQueue`. */
export function createCallQueue({
  maxConcurrent,
  maxWaiting,
  onFull,
}: CallQueueOptions): CallQueue {
  // Insertion order is the order of turns; deleting from the middle (an abort) costs nothing.
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
    // The turn is handed over, not released: a newcomer cannot slip in between.
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
