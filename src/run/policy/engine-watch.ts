import type { Engine } from "../../engine/engine.ts";
import { passOn } from "../../engine/pass-on.ts";
import { RolloutError, isOwnBug } from "../../errors.ts";
import type { Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { Listeners } from "../schedule/listeners.ts";

/** The begin or the end of an outage of the engine. JSON-able. */
export interface EngineOutage {
  /** `engine-back`: the engine answers again. */
  readonly type: "engine-unreachable" | "engine-back";
  /** The time without an answer in milliseconds. */
  readonly silentMs: number;
}

/** Options of an engine watch. */
interface EngineWatchOptions {
  readonly clock: Clock;
  /**
   * Called when the engine is first found unreachable, each minute while it stays so, and when it is back. If it throws
   * or rejects, disposing of the watch throws.
   */
  readonly onOutage: (outage: EngineOutage) => void;
}

/** A watched engine. Disposing of it ends the watch, not the engine. */
interface EngineWatch extends AsyncDisposable {
  /** The watched engine, for its callers. */
  readonly engine: Engine;
}

/** The time between two checks. With the timeout of a probe, an outage is reported within 15 s. */
const EVERY_MS = 5_000;
const PROBE_MS = 4_000;
const AGAIN_MS = 60_000;

/**
 * Watches an engine. If calls wait and none has been answered for some seconds, the watch sends a probe. Long turns and
 * full queues are not reported. Calls repeat their requests on their own.
 */
export function watchEngine(engine: Engine, options: EngineWatchOptions): EngineWatch {
  const { clock, onOutage } = options;
  const stop = new AbortController();
  let runningCount = 0;
  let failure: { readonly error: unknown } | undefined;
  const onFailure = (error: unknown): void => void (failure ??= { error });
  const listeners = new Listeners({ signal: stop.signal, onFailure, clock });
  const silence = new Silence(clock, (outage) => {
    listeners.tell(`report the state of the engine (${outage.type})`, () => onOutage(outage));
  });

  async function check(): Promise<void> {
    if (runningCount === 0 || silence.lengthMs < EVERY_MS) return;
    if (await isReachable(engine, { clock, signal: stop.signal })) silence.end();
    else if (!stop.signal.aborted) silence.report();
  }

  /** Counts a call while it waits for its answer. */
  async function watched<Result>(call: () => Promise<Result>): Promise<Result> {
    if (runningCount === 0) silence.restart();
    runningCount += 1;
    try {
      const result = await call();
      silence.end();
      return result;
    } finally {
      runningCount -= 1;
    }
  }

  const watching = repeat(check, { clock, signal: stop.signal });
  // Disposing of the watch throws this error.
  watching.catch(() => {});
  return {
    engine: {
      ...passOn(engine),
      generate: async (...call) => await watched(() => engine.generate(...call)),
      ...(engine.complete && {
        complete: async (...call) => await watched(() => engine.complete!(...call)),
      }),
    },
    async [Symbol.asyncDispose]() {
      await listeners.settle();
      stop.abort();
      await watching;
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** The time since an engine's last answer, with the reports about it. */
class Silence {
  readonly #clock: Clock;
  readonly #onOutage: (outage: EngineOutage) => void;
  #answeredAtMs: number;
  #reportedAtMs: number | undefined;

  constructor(clock: Clock, onOutage: (outage: EngineOutage) => void) {
    this.#clock = clock;
    this.#onOutage = onOutage;
    this.#answeredAtMs = clock.now();
  }

  /** Milliseconds since the last answer. */
  get lengthMs(): number {
    return this.#clock.now() - this.#answeredAtMs;
  }

  /** Restarts the time when a call starts, because before it no call was waiting for an answer. */
  restart(): void {
    if (this.#reportedAtMs === undefined) this.#answeredAtMs = this.#clock.now();
  }

  /** Records an answer, and reports the end of an outage. */
  end(): void {
    const now = this.#clock.now();
    if (this.#reportedAtMs !== undefined) {
      this.#onOutage({ type: "engine-back", silentMs: now - this.#answeredAtMs });
    }
    this.#reportedAtMs = undefined;
    this.#answeredAtMs = now;
  }

  /** Reports an outage, at most once a minute. */
  report(): void {
    const now = this.#clock.now();
    if (this.#reportedAtMs !== undefined && now - this.#reportedAtMs < AGAIN_MS) return;
    this.#reportedAtMs = now;
    this.#onOutage({ type: "engine-unreachable", silentMs: now - this.#answeredAtMs });
  }
}

/** Repeats `check` until the signal aborts. */
async function repeat(
  check: () => Promise<void>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    try {
      await clock.sleep(EVERY_MS, { signal });
      await check();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** True if the engine answers a request: for its load, which is cheaper, or for its description. */
async function isReachable(
  engine: Engine,
  { clock, signal: parent }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<boolean> {
  const ask = async (signal: AbortSignal): Promise<boolean> => {
    const load = await engine.load?.({ signal });
    if (load !== undefined && load.workers.length > 0) return true;
    await engine.describe({ signal });
    return true;
  };
  try {
    // A caller's engine may ignore the signal.
    return await withDeadline(ask, {
      ms: PROBE_MS,
      signal: parent,
      clock,
      onLate: () => false,
    });
  } catch (error) {
    if (parent.aborted) return false;
    if (isOwnBug(error)) throw error;
    // Any other error is not an answer.
    return error instanceof RolloutError && error.code !== "engine/unreachable";
  }
}
