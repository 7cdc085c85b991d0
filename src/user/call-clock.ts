import { setTimeout as delay } from "node:timers/promises";

/** Where waiting, the time of day and chance come from; tests pass their own. */
export interface CallClock {
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * Waits.
   *
   * @throws the signal's reason where the signal is aborted.
   */
  sleep(ms: number, options: { signal: AbortSignal }): Promise<void>;
  /** In [0, 1). */
  random(): number;
}

/** The machine's own clock and randomness. */
export const systemClock: CallClock = {
  now: () => Date.now(),
  async sleep(ms, { signal }) {
    try {
      await delay(ms, undefined, { signal });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  },
  random: () => Math.random(),
};

/**
 * Runs a call with a deadline of its own.
 *
 * @throws the outer signal's reason where that is aborted, what `onLate` returns where the deadline
 *   passes first, and whatever the call throws otherwise. A call that ignores its signal is not
 *   waited for.
 */
export async function withDeadline<Result>(
  call: (signal: AbortSignal) => Promise<Result>,
  options: {
    readonly ms: number;
    readonly signal: AbortSignal;
    readonly clock: CallClock;
    readonly onLate: () => Error;
  },
): Promise<Result> {
  const { ms, signal, clock, onLate } = options;
  signal.throwIfAborted();
  const inner = new AbortController();
  const finished = new AbortController();
  const forward = (): void => inner.abort(signal.reason);
  signal.addEventListener("abort", forward, { once: true });
  let isLate = false;
  const timer = clock.sleep(ms, { signal: finished.signal }).then(
    () => {
      isLate = true;
      inner.abort(new DOMException("The deadline passed", "TimeoutError"));
    },
    () => undefined, // The call finished first.
  );
  try {
    return await new Promise<Result>((resolve, reject) => {
      inner.signal.addEventListener("abort", () => reject(inner.signal.reason as Error));
      call(inner.signal).then(resolve, reject);
    });
  } catch (error) {
    signal.throwIfAborted();
    if (isLate) throw onLate();
    throw error;
  } finally {
    signal.removeEventListener("abort", forward);
    finished.abort();
    await timer;
  }
}
