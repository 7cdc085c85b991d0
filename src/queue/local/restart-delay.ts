import { backOffMs } from "../../async/back-off.ts";

/** The time after which a worker that ends no longer counts as one that fails again, in milliseconds. */
const stableMs = 60_000;

const backOff = { firstMs: 1_000, mostMs: 30_000 };

/**
 * Computes the waits before workers that ended are replaced. The waits keep workers that crash repeatedly from using
 * all of the CPU.
 */
export class RestartDelay {
  #failureCount = 0;

  /**
   * Returns the wait before the next start, in milliseconds. The first start after an end needs no wait.
   *
   * @param playedMs - The time for which the worker that ended was ready, in milliseconds.
   */
  next(playedMs: number): number {
    if (playedMs >= stableMs) this.#failureCount = 0;
    const failureCount = this.#failureCount++;
    return failureCount === 0 ? 0 : backOffMs(failureCount, backOff);
  }
}
