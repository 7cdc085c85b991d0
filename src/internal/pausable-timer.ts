import type { Clock } from "./clock.ts";

/** A timer that can be stopped for a while. */
export interface PausableTimer {
  /** In milliseconds; 0 when it is over. */
  readonly leftMs: () => number;
  /** Its time stands still until `goOn()`. */
  readonly pause: () => void;
  readonly goOn: () => void;
  /** It never fires. */
  readonly callOff: () => void;
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
  let atStartMs = ms;
  let startedAtMs = clock.now();
  let isRunning = false;
  let isOver = ms === Infinity;
  let stop = (): void => {};
  const leftMs = (): number =>
    isRunning ? Math.max(atStartMs - (clock.now() - startedAtMs), 0) : atStartMs;
  const goOn = (): void => {
    if (isRunning || isOver) return;
    startedAtMs = clock.now();
    isRunning = true;
    stop = clock.after(atStartMs, () => {
      isOver = true;
      callback();
    });
  };
  goOn();
  return {
    leftMs,
    pause() {
      if (!isRunning || isOver) return;
      stop();
      atStartMs = leftMs();
      isRunning = false;
    },
    goOn,
    callOff() {
      isOver = true;
      stop();
    },
  };
}
