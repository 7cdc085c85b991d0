/** Time, as engines read it and wait in it. A parameter, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since any fixed point; never goes backwards. */
  readonly now: () => number;
  /**
   * Waits.
   *
   * @throws the signal's reason where the signal is aborted first.
   */
  readonly sleep: (ms: number, options?: { signal?: AbortSignal }) => Promise<void>;
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
};
