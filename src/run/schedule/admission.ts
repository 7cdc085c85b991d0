import type { EngineLoad, WorkerLoad } from "../../engine/engine.ts";
import { isOwnBug } from "../../errors.ts";
import { createClock, type Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { onAbort } from "../../async/on-abort.ts";
import { withResolvers } from "../../async/with-resolvers.ts";

/** Options of an admission gate. */
export interface EngineGateOptions {
  /** The maximum number of admitted attempts, at least 1. */
  readonly concurrency: number;
  /**
   * Reduces the number of admitted attempts while the engine is full. Absent: the number is
   * constant.
   */
  readonly follow?: LoadFollowing;
}

/** Settings for following an engine's load. Every field but the first has a default. */
export interface LoadFollowing {
  /** Reads the engine's load. A failed reading changes nothing. */
  readonly read: (options: { signal: AbortSignal }) => Promise<EngineLoad>;
  readonly clock: Pick<Clock, "sleep"> & Partial<Clock>;
  /** The time between readings, in milliseconds. Default 1,000. */
  readonly everyMs?: number;
  /** The time after which a reading without an answer is abandoned, in milliseconds. Default 10,000. */
  readonly readingMs?: number;
  /** The minimum number of admitted attempts, however full the engine is. Default 1. */
  readonly least?: number;
}

/** A request for admission. */
export interface AdmissionRequest {
  /**
   * The attempt with the smallest number is admitted first. Group indexes serve as priorities, so that groups that
   * start first also end first.
   */
  readonly priority: number;
  /** Ends the wait when it aborts. */
  readonly signal: AbortSignal;
}

/** Admits attempts, a limited number at the same time, those of the oldest group first. */
export interface EngineGate extends AsyncDisposable {
  /**
   * Waits for admission.
   *
   * @returns a function that ends the admission. A second call has no effect.
   * @throws the signal's reason if the signal aborts first.
   */
  admit(request: AdmissionRequest): Promise<() => void>;
  /** The numbers of admitted and waiting attempts, and the current limit. */
  readonly state: { readonly admitted: number; readonly waiting: number; readonly limit: number };
  /** Stops following the engine. Waiting attempts are still admitted when others end. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The share of the key-value cache in use above which fewer attempts are admitted, 0 to 1. */
const highWater = 0.9;

/** The share of the key-value cache in use up to which more attempts are admitted again. */
const lowWater = 0.75;

/** The number of waiting requests per running request above which fewer attempts are admitted. */
const mostWaiting = 0.25;

interface Waiting extends Pick<AdmissionRequest, "priority"> {
  readonly enter: () => void;
}

/**
 * Creates a gate. With `follow`, the limit follows the fullest worker, because sessions stay on their worker: each
 * reading above a mark lowers the limit by an eighth, and each reading with room raises it by a sixteenth, up to
 * `concurrency`. Attempts that were admitted are never stopped.
 */
export function createAdmissionGate({ concurrency, follow }: EngineGateOptions): EngineGate {
  const queue: Waiting[] = [];
  const stop = new AbortController();
  let admitted = 0;
  let limit = concurrency;

  function enterNext(): void {
    while (admitted < limit && queue.length > 0) {
      admitted += 1;
      queue.shift()!.enter();
    }
  }

  function leave(): void {
    admitted -= 1;
    enterNext();
  }

  function setLimit(next: number): void {
    limit = next;
    enterNext();
  }

  const following =
    follow === undefined
      ? Promise.resolve()
      : followLoad(follow, {
          signal: stop.signal,
          onReading: (load) => setLimit(nextLimit(load, { limit, concurrency, follow })),
        });
  // Disposing of the gate throws this error.
  following.catch(() => {});
  return {
    get state() {
      return { admitted, waiting: queue.length, limit };
    },
    async admit({ priority, signal }) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = withResolvers();
      const waiting = { priority, enter: resolve };
      insert(queue, waiting);
      const letGo = onAbort(signal, () => {
        const index = queue.indexOf(waiting);
        if (index < 0) return;
        queue.splice(index, 1);
        reject(signal.reason);
      });
      enterNext();
      try {
        await promise;
      } finally {
        letGo();
      }
      let hasLeft = false;
      return () => {
        if (hasLeft) return;
        hasLeft = true;
        leave();
      };
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await following;
    },
  };
}

/** Inserts into a queue that is sorted by priority, then by arrival. */
function insert(queue: Waiting[], waiting: Waiting): void {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const isLater = queue[middle]!.priority > waiting.priority;
    if (isLater) high = middle;
    else low = middle + 1;
  }
  queue.splice(low, 0, waiting);
}

/** Returns the limit after a reading. */
function nextLimit(
  { workers }: EngineLoad,
  { limit, concurrency, follow }: { limit: number; concurrency: number; follow: LoadFollowing },
): number {
  if (workers.length === 0) return limit;
  const { least = 1 } = follow;
  const use = Math.max(...workers.map(({ keyValueUse = 0 }) => keyValueUse));
  const queued = Math.max(...workers.map(waitingShare));
  if (use > highWater || queued > mostWaiting) {
    return Math.max(Math.min(least, concurrency), limit - Math.ceil(limit / 8));
  }
  const hasRoom = use <= lowWater && queued <= mostWaiting / 2;
  return hasRoom ? Math.min(concurrency, limit + Math.ceil(limit / 16)) : limit;
}

/** Returns the number of waiting requests per running one. A paused worker has none running. */
function waitingShare({ runningCount, waitingCount = 0 }: WorkerLoad): number {
  return runningCount === 0 ? 0 : waitingCount / runningCount;
}

/** Reads the load repeatedly until it is stopped. */
async function followLoad(
  { read, clock, everyMs = 1_000, readingMs = 10_000 }: LoadFollowing,
  { signal, onReading }: { signal: AbortSignal; onReading: (load: EngineLoad) => void },
): Promise<void> {
  // A caller's engine may ignore the signal, so a deadline ends the wait.
  const ask = async (stop: AbortSignal): Promise<EngineLoad> => await read({ signal: stop });
  const timed = { ...createClock(clock), ...clock };
  const reading = { ms: readingMs, clock: timed, signal, onLate: noLoad };
  while (!signal.aborted) {
    try {
      await clock.sleep(everyMs, { signal });
      onReading(await withDeadline(ask, reading));
    } catch (error) {
      // A failed reading is repeated later. Turns detect an outage of the engine themselves.
      if (!signal.aborted && isOwnBug(error)) throw error;
    }
  }
}

function noLoad(): EngineLoad {
  return { workers: [], silent: [] };
}
