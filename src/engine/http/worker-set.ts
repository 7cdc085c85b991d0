import type { Clock } from "../../async/clock.ts";
import { hashText } from "../../values/hash-text.ts";
import type { HttpTransport } from "./http-transport.ts";

/** One address that samples. */
export interface Worker {
  readonly url: string;
  /** For sampling. */
  readonly transport: HttpTransport;
  /** For everything else, so that an abort need not wait behind what it aborts. */
  readonly control: HttpTransport;
}

/** Which worker a session goes to. */
export interface WorkerSet {
  readonly workers: readonly Worker[];
  /**
   * The session's worker: always the same one while it is up, and the next in the session's own
   * order while it is not, so that one worker's sessions spread over all the others. Where all are
   * down, the session's first.
   */
  pick(sessionId: string): Worker;
  /** Passes the worker over for a while, twice as long with each time in a row. */
  markDown(worker: Worker): void;
  /** The worker has answered: what was before counts no longer. */
  markUp(worker: Worker): void;
}

/** Longest that a worker is passed over, in times of the first. */
const MOST_COOLDOWNS = 16;

/**
 * Keeps sessions on workers by rendezvous hashing.
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
      // Many turns break at once where a worker goes: together they are one time.
      if ((downUntil.get(worker) ?? now) > now) return;
      const count = Math.min(2 * (cooldownCounts.get(worker) ?? 0.5), MOST_COOLDOWNS);
      cooldownCounts.set(worker, count);
      downUntil.set(worker, now + count * cooldownMs);
    },
    markUp(worker) {
      cooldownCounts.delete(worker);
    },
  };
}
