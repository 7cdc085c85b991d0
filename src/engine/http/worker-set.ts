import type { Clock } from "../../async/clock.ts";
import { hashText } from "../../values/hash-text.ts";
import type { HttpTransport } from "./http-transport.ts";

/** One address that samples. */
export interface Worker {
  readonly url: string;
  /** Connections for sampling. */
  readonly transport: HttpTransport;
  /**
   * Connections for control calls, so that an abort does not wait for the request that it aborts.
   */
  readonly control: HttpTransport;
}

/** Assigns sessions to workers. */
export interface WorkerSet {
  readonly workers: readonly Worker[];
  /**
   * Returns the first worker that is up in the session's own order of workers, or the first of all if every worker is
   * down. So a session stays with one worker while that worker is up. The sessions of a worker that is down spread over
   * all others.
   */
  pick(sessionId: string): Worker;
  /** Skips the worker for a while, twice as long with each consecutive failure. */
  markDown(worker: Worker): void;
  /** Records that the worker has answered. Earlier failures no longer count. */
  markUp(worker: Worker): void;
}

/** Maximum time that a worker is skipped, as a multiple of the first time. */
const MAX_COOLDOWNS = 16;

/**
 * Assigns sessions to workers by rendezvous hashing.
 *
 * **Source:** Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998.
 */
export function createWorkerSet({
  workers,
  cooldownMs,
  clock,
}: {
  workers: readonly [Worker, ...Worker[]];
  cooldownMs: number;
  clock: Clock;
}): WorkerSet {
  const downUntil = new Map<Worker, number>();
  const cooldownCounts = new Map<Worker, number>();
  return {
    workers,
    pick(sessionId) {
      if (workers.length === 1) return workers[0];
      const ranked = workers
        .map((worker) => ({ worker, score: hashText(`${sessionId}\n${worker.url}`) }))
        .toSorted((a, b) => b.score - a.score);
      const now = clock.now();
      const up = ranked.find(({ worker }) => (downUntil.get(worker) ?? now) <= now);
      return (up ?? ranked[0])?.worker ?? workers[0];
    },
    markDown(worker) {
      const now = clock.now();
      // When a worker fails, many turns break at once. Together they count as one failure.
      if ((downUntil.get(worker) ?? now) > now) return;
      const count = Math.min(2 * (cooldownCounts.get(worker) ?? 0.5), MAX_COOLDOWNS);
      cooldownCounts.set(worker, count);
      downUntil.set(worker, now + count * cooldownMs);
    },
    markUp(worker) {
      cooldownCounts.delete(worker);
    },
  };
}
