/** Reads the time and waits. A parameter, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since an arbitrary fixed point; never decreases. */
  readonly now: () => number;
  /**
   * Waits.
   *
   * @throws the signal's reason if the signal aborts first.
   */
  readonly sleep: (ms: number, options?: { signal?: AbortSignal }) => Promise<void>;
  /** Calls back once after `ms` milliseconds. The returned function cancels the call. */
  readonly after: (ms: number, callback: () => void) => () => void;
}

/** The machine's monotonic clock. Waits may have any length; a wait of `Infinity` never ends. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, { signal } = {}) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        callOff();
        reject(signal?.reason as Error);
      };
      const callOff = startTimer(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
  after: startTimer,
};

/**
 * Returns the time of day, in whole milliseconds since the epoch, advanced by a monotonic clock: it is unaffected
 * if the system time is set or stands still.
 */
function steadyTime(clock: Pick<Clock, "now">): () => number {
  const offset = Date.now() - clock.now();
  return () => Math.round(offset + clock.now());
}

/** Returns a time of day for measuring. A clock that may be set is replaced by `steadyTime()`. */
export function measuring(now: () => number, clock: Pick<Clock, "now">): () => number {
  return now === Date.now ? steadyTime(clock) : now;
}

/** Node's own timers fire immediately for longer waits. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Longer waits use several timers, one after the other. */
function startTimer(ms: number, callback: () => void): () => void {
  if (ms <= LONGEST_TIMER_MS) {
    const only = setTimeout(callback, ms);
    return () => clearTimeout(only);
  }
  let timer: NodeJS.Timeout;
  const wait = (restMs: number): void => {
    timer =
      restMs <= LONGEST_TIMER_MS
        ? setTimeout(callback, restMs)
        : setTimeout(() => wait(restMs - LONGEST_TIMER_MS), LONGEST_TIMER_MS);
  };
  wait(ms);
  return () => clearTimeout(timer);
}

/** The machine's clock with the given parts replaced. Deadlines then use the given `sleep`. */
export function createClock({
  now = systemClock.now,
  sleep,
}: {
  now?: Clock["now"] | undefined;
  sleep?: Clock["sleep"] | undefined;
} = {}): Clock {
  if (sleep === undefined) return { ...systemClock, now };
  const after: Clock["after"] = (ms, callback) => {
    const controller = new AbortController();
    const { signal } = controller;
    void (async () => {
      try {
        await sleep(ms, { signal });
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      if (!signal.aborted) callback();
    })();
    return () => controller.abort();
  };
  return { now, sleep, after };
}
