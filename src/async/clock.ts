/** Time, to read it and to wait in it. A parameter, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since any fixed point; never goes backwards. */
  readonly now: () => number;
  /**
   * Waits.
   *
   * @throws the signal's reason where the signal is aborted first.
   */
  readonly sleep: (ms: number, options?: { signal?: AbortSignal }) => Promise<void>;
  /** Calls back once when the time is over, unless the function that it returns is called before. */
  readonly after: (ms: number, callback: () => void) => () => void;
}

/** The machine's own monotonic clock. Waits may be of any length; one of `Infinity` does not end. */
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
 * The time of day as it goes on from now: whole milliseconds since the epoch, counted by a clock that no one
 * sets, however the machine's is put right meanwhile or stands still with it.
 */
function steadyTime(clock: Pick<Clock, "now">): () => number {
  const offset = Date.now() - clock.now();
  return () => Math.round(offset + clock.now());
}

/**
 * A time of day by which something is measured: where it is the machine's, which may be set meanwhile, it goes on as
 * `steadyTime()` does.
 */
export function measuring(now: () => number, clock: Pick<Clock, "now">): () => number {
  return now === Date.now ? steadyTime(clock) : now;
}

/** Node's own timers fire at once for anything longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Longer waits are made of several timers, one after the other. */
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

/** The machine's clock with the parts replaced that are given. Deadlines are kept with `sleep` then. */
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
