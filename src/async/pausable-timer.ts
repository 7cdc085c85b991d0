import type { Clock } from "./clock.ts";

/** A timer that can be paused. */
export interface PausableTimer {
  /** The remaining time in milliseconds; 0 when it is over. */
  leftMs(): number;
  /** Stops the time until `resume()`. */
  pause(): void;
  resume(): void;
  /** Limits the remaining time to `ms` from now. */
  shorten(ms: number): void;
  /** Adds `ms` to the remaining time. */
  lengthen(ms: number): void;
  /** Cancels the timer. */
  callOff(): void;
}

/**
 * Starts a timer that calls back once, after `ms` milliseconds. The time of pauses does not count.
 *
 * @param ms - `Infinity` for never.
 */
export function startPausableTimer(
  ms: number,
  callback: () => void,
  clock: Pick<Clock, "after" | "now">,
): PausableTimer {
  const timer = new RunningTimer(ms, callback, clock);
  timer.resume();
  return timer;
}

/** A class for speed, as each turn of each episode starts several. */
class RunningTimer implements PausableTimer {
  readonly #callback: () => void;
  readonly #clock: Pick<Clock, "after" | "now">;
  #atStartMs: number;
  #startedAtMs = 0;
  #isOver = false;
  /** Cancels the system timer; `undefined` while paused. */
  #stop: (() => void) | undefined;

  constructor(ms: number, callback: () => void, clock: Pick<Clock, "after" | "now">) {
    this.#callback = callback;
    this.#clock = clock;
    this.#atStartMs = ms;
  }

  leftMs(): number {
    if (this.#stop === undefined) return this.#atStartMs;
    return Math.max(this.#atStartMs - (this.#clock.now() - this.#startedAtMs), 0);
  }

  pause(): void {
    if (this.#stop === undefined || this.#isOver) return;
    this.#stop();
    this.#atStartMs = this.leftMs();
    this.#stop = undefined;
  }

  resume(): void {
    if (this.#stop !== undefined || this.#isOver) return;
    this.#startedAtMs = this.#clock.now();
    this.#stop =
      this.#atStartMs === Infinity
        ? () => {}
        : this.#clock.after(this.#atStartMs, () => {
            this.#isOver = true;
            this.#callback();
          });
  }

  shorten(ms: number): void {
    if (this.leftMs() > ms) this.#set(ms);
  }

  lengthen(ms: number): void {
    this.#set(this.leftMs() + ms);
  }

  #set(leftMs: number): void {
    if (this.#isOver) return;
    const isRunning = this.#stop !== undefined;
    this.pause();
    this.#atStartMs = leftMs;
    if (isRunning) this.resume();
  }

  callOff(): void {
    this.#isOver = true;
    this.#stop?.();
  }
}
