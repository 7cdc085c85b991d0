import type { Clock } from "./clock.ts";

/** A timer that can be stopped for a while. */
export interface PausableTimer {
  /** In milliseconds; 0 when it is over. */
  leftMs(): number;
  /** Its time stands still until `goOn()`. */
  pause(): void;
  goOn(): void;
  /** It has no more than `ms` left from now on. */
  shorten(ms: number): void;
  /** It has `ms` more than it had. */
  lengthen(ms: number): void;
  /** It never fires. */
  callOff(): void;
}

/**
 * Calls back once when so much time has passed, pauses left out.
 *
 * @param ms - `Infinity` for never.
 */
export function startPausableTimer(
  ms: number,
  callback: () => void,
  clock: Pick<Clock, "after" | "now">,
): PausableTimer {
  const timer = new RunningTimer(ms, callback, clock);
  timer.goOn();
  return timer;
}

/** A class, as several are started in each turn of each episode. */
class RunningTimer implements PausableTimer {
  readonly #callback: () => void;
  readonly #clock: Pick<Clock, "after" | "now">;
  #atStartMs: number;
  #startedAtMs = 0;
  #isOver = false;
  /** While it runs. */
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

  goOn(): void {
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
    if (isRunning) this.goOn();
  }

  callOff(): void {
    this.#isOver = true;
    this.#stop?.();
  }
}
