import type { EngineLoad, WorkerLoad } from "../../engine/engine.ts";
import { isOwnBug } from "../../errors.ts";
import { createClock, type Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { onAbort } from "../../async/on-abort.ts";
import { withResolvers } from "../../async/with-resolvers.ts";

/** What an admission gate goes by. */
export interface EngineGateOptions {
  /** Most that are admitted at once, at least 1. */
  readonly concurrency: number;
  /** Where given, fewer are admitted while the engine is full. */
  readonly follow?: LoadFollowing;
}

/** How the gate follows an engine's load. Every field but the first has a default. */
export interface LoadFollowing {
  /** Asks the engine; a reading that fails changes nothing. */
  readonly read: (options: { signal: AbortSignal }) => Promise<EngineLoad>;
  readonly clock: Pick<Clock, "sleep"> & Partial<Clock>;
  /** Milliseconds between readings. Default 1 000. */
  readonly everyMs?: number;
  /** Milliseconds after which a reading that has not come is given up. Default 10 000. */
  readonly readingMs?: number;
  /** Use of the memory for keys and values above which fewer are admitted, 0 to 1. Default 0.9. */
  readonly highWater?: number;
  /** Use up to which more are admitted again. Default 0.75. */
  readonly lowWater?: number;
  /** Requests that may wait for each that is sampled, above which fewer are admitted. Default 0.25. */
  readonly mostWaiting?: number;
  /** Fewest that are admitted at once however full the engine is. Default 1. */
  readonly least?: number;
}

/** One who wants to be admitted. */
export interface AdmissionWish {
  /** The smallest goes first, such as the number of a group: what began first is to end first. */
  readonly priority: number;
  /** Aborted, the wait ends. */
  readonly signal: AbortSignal;
}

/** Lets work begin, a bounded number at once, the oldest group's first. */
export interface EngineGate extends AsyncDisposable {
  /**
   * Waits to be admitted.
   *
   * @returns what gives the place back; a second call of it does nothing.
   * @throws the signal's reason where the signal is aborted first.
   */
  admit(wish: AdmissionWish): Promise<() => void>;
  /** How many are admitted, how many wait, and how many may be admitted at once now. */
  readonly state: { readonly admitted: number; readonly waiting: number; readonly limit: number };
  /** Stops following the engine. Those who wait go on waiting for those who were admitted. */
  [Symbol.asyncDispose](): Promise<void>;
}

interface Waiting extends Pick<AdmissionWish, "priority"> {
  readonly arrival: number;
  readonly enter: () => void;
}

/**
 * Makes a gate. The limit follows the fullest worker, since sessions stay where they are: each reading
 * above a mark takes an eighth of it away, each reading with room gives a sixteenth back, up to the
 * concurrency. Nobody who was admitted is sent away.
 */
export function createAdmissionGate({ concurrency, follow }: EngineGateOptions): EngineGate {
  const queue: Waiting[] = [];
  const stop = new AbortController();
  let admitted = 0;
  let arrivalCount = 0;
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
  // Whoever disposes of the gate is told.
  following.catch(() => {});
  return {
    get state() {
      return { admitted, waiting: queue.length, limit };
    },
    async admit({ priority, signal }) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = withResolvers();
      const waiting = { priority, arrival: arrivalCount++, enter: resolve };
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

/** Keeps the queue in order of priority and, among equals, of arrival. */
function insert(queue: Waiting[], waiting: Waiting): void {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const isBehind = queue[middle]!.priority > waiting.priority;
    if (isBehind) high = middle;
    else low = middle + 1;
  }
  queue.splice(low, 0, waiting);
}

/** How many may be admitted after a reading. */
function nextLimit(
  { workers }: EngineLoad,
  { limit, concurrency, follow }: { limit: number; concurrency: number; follow: LoadFollowing },
): number {
  if (workers.length === 0) return limit;
  const { highWater = 0.9, lowWater = 0.75, mostWaiting = 0.25, least = 1 } = follow;
  const use = Math.max(...workers.map(({ keyValueUse = 0 }) => keyValueUse));
  const queued = Math.max(...workers.map(waitingShare));
  if (use > highWater || queued > mostWaiting) {
    return Math.max(Math.min(least, concurrency), limit - Math.ceil(limit / 8));
  }
  const hasRoom = use <= lowWater && queued <= mostWaiting / 2;
  return hasRoom ? Math.min(concurrency, limit + Math.ceil(limit / 16)) : limit;
}

/** Requests that wait for each that is sampled; none runs on a worker that is paused. */
function waitingShare({ runningCount, waitingCount = 0 }: WorkerLoad): number {
  return runningCount === 0 ? 0 : waitingCount / runningCount;
}

/** Reads again and again until it is stopped. */
async function followLoad(
  { read, clock, everyMs = 1_000, readingMs = 10_000 }: LoadFollowing,
  { signal, onReading }: { signal: AbortSignal; onReading: (load: EngineLoad) => void },
): Promise<void> {
  // An engine may be anyone's, and heed no signal: nobody waits for it without end.
  const ask = async (stop: AbortSignal): Promise<EngineLoad> => await read({ signal: stop });
  const timed = { ...createClock(clock), ...clock };
  const reading = { ms: readingMs, clock: timed, signal, onLate: noLoad };
  while (!signal.aborted) {
    try {
      await clock.sleep(everyMs, { signal });
      onReading(await withDeadline(ask, reading));
    } catch (error) {
      // Who cannot be asked now is asked again; whether that is an outage, the turns will tell.
      if (!signal.aborted && isOwnBug(error)) throw error;
    }
  }
}

function noLoad(): EngineLoad {
  return { workers: [], silent: [] };
}
