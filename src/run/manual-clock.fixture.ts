import type { Clock } from "../internal/clock.ts";

/** A clock that stands still until the test lets time pass. */
export function manualClock() {
  let nowMs = 0;
  let timers: { readonly atMs: number; readonly ring: () => void }[] = [];
  const after: Clock["after"] = (ms, callback) => {
    const timer = { atMs: nowMs + ms, ring: callback };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  };
  const clock: Clock = {
    now: () => nowMs,
    after,
    sleep: (ms, { signal } = {}) =>
      new Promise((resolve, reject) => {
        const callOff = after(ms, () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        });
        const onAbort = () => {
          callOff();
          reject(signal!.reason as Error);
        };
        if (signal?.aborted) onAbort();
        signal?.addEventListener("abort", onAbort, { once: true });
      }),
  };
  /** Lets time pass, and everything happen that it brings about. */
  async function pass(ms: number): Promise<void> {
    const endMs = nowMs + ms;
    for (;;) {
      await settle();
      const [next] = timers.toSorted((one, other) => one.atMs - other.atMs);
      if (next === undefined || next.atMs > endMs) break;
      timers = timers.filter((each) => each !== next);
      nowMs = next.atMs;
      next.ring();
    }
    nowMs = endMs;
  }
  return { clock, pass };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
