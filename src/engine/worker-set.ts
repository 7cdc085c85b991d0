import type { Clock } from "../internal/clock.ts";
import { hashText } from "../internal/hash-text.ts";
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
  /** Passes the worker over for a while. */
  markDown(worker: Worker): void;
}

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
      downUntil.set(worker, clock.now() + cooldownMs);
    },
  };
}
