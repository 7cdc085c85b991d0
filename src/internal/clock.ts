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

/** The machine's own monotonic clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, { signal } = {}) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      }, ms);
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

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
