import { setImmediate } from "node:timers/promises";
import type { Clock } from "../async/clock.ts";

/** A clock that moves only when the test moves it. */
export interface ManualClock extends Pick<Clock, "now" | "sleep"> {
  /** The durations of all waits so far, in milliseconds, in order. */
  readonly sleeps: readonly number[];
  /** The number of waits that have not ended. */
  readonly pendingCount: number;
  /**
   * Moves the clock and ends the waits that are due, in the order of time. After each ended wait,
   * runs the code that waited for it before ending the next one.
   */
  advance(ms: number): Promise<void>;
  /** Resolves once a wait of exactly `ms` milliseconds is pending. */
  untilSleeping(ms: number): Promise<void>;
}

/** Settings of `createManualClock()`. */
export interface ManualClockOptions {
  /** The start time, in milliseconds. Default 0. */
  readonly startMs?: number;
  /**
   * Waits of at most this many milliseconds end immediately and move the clock. Default -1: none. Use it if back-off
   * should take no time while deadlines stand still.
   */
  readonly skipUpToMs?: number;
}

interface Sleeper {
  readonly ms: number;
  readonly dueMs: number;
  readonly wake: () => void;
}

/** Creates a clock that stands still. Pass its `now` and `sleep` to options of these names. */
export function createManualClock({
  startMs = 0,
  skipUpToMs = -1,
}: ManualClockOptions = {}): ManualClock {
  let nowMs = startMs;
  const sleeps: number[] = [];
  const sleepers = new Set<Sleeper>();
  const observers = new Set<() => void>();

  async function advanceTo(untilMs: number): Promise<void> {
    for (;;) {
      const [next] = [...sleepers]
        .filter(({ dueMs }) => dueMs <= untilMs)
        .toSorted((a, b) => a.dueMs - b.dueMs);
      if (next === undefined) break;
      nowMs = Math.max(nowMs, next.dueMs);
      next.wake();
      await setImmediate();
    }
    nowMs = Math.max(nowMs, untilMs);
  }

  function sleep(ms: number, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      sleeps.push(ms);
      const end = (): void => {
        sleepers.delete(sleeper);
        signal?.removeEventListener("abort", onAbort);
      };
      const onAbort = (): void => {
        end();
        reject(signal?.reason as Error);
      };
      const wake = (): void => {
        end();
        resolve();
      };
      const sleeper: Sleeper = { ms, dueMs: nowMs + ms, wake };
      sleepers.add(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
      for (const observe of observers) observe();
      if (ms <= skipUpToMs) void advanceTo(sleeper.dueMs);
    });
  }

  return {
    now: () => nowMs,
    sleep,
    sleeps,
    get pendingCount() {
      return sleepers.size;
    },
    advance: (ms) => advanceTo(nowMs + ms),
    untilSleeping: (ms) =>
      new Promise((resolve) => {
        const observe = (): void => {
          if (![...sleepers].some((sleeper) => sleeper.ms === ms)) return;
          observers.delete(observe);
          resolve();
        };
        observers.add(observe);
        observe();
      }),
  };
}
