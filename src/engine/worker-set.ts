import type { Clock } from "./clock.ts";
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
        .map((worker) => ({ worker, score: hash(`${sessionId}\n${worker.url}`) }))
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

/**
 * A well-spread 32-bit hash of a text's UTF-16 units: FNV-1a, then MurmurHash3's finalizer, without
 * which texts that end alike would be ranked alike.
 *
 * **Source:** FNV-1a of draft-eastlake-fnv; fmix32 of aappleby/smhasher src/MurmurHash3.cpp.
 */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
