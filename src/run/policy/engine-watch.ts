import type { Engine } from "../../engine/engine.ts";
import { RolloutError, isOwnBug } from "../../errors.ts";
import type { Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { Listeners } from "../schedule/listeners.ts";

/** An outage of the engine, or its end. JSON-able. */
export interface EngineNews {
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
  readonly onNews: (news: EngineNews) => void;
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
export function watchEngine(engine: Engine, { clock, onNews }: EngineWatchOptions): EngineWatch {
  const stop = new AbortController();
  let runningCount = 0;
  let answeredAtMs = clock.now();
  let reportedAtMs: number | undefined;

  let failure: { readonly error: unknown } | undefined;
  const onFailure = (error: unknown): void => void (failure ??= { error });
  const listeners = new Listeners({ signal: stop.signal, onFailure, clock });

  function report(news: EngineNews): void {
    listeners.tell(`report the state of the engine (${news.type})`, () => onNews(news));
  }

  function noteAnswer(): void {
    const now = clock.now();
    if (reportedAtMs !== undefined) report({ type: "engine-back", silentMs: now - answeredAtMs });
    reportedAtMs = undefined;
    answeredAtMs = now;
  }

  async function look(): Promise<void> {
    if (runningCount === 0 || clock.now() - answeredAtMs < EVERY_MS) return;
    if (await isReachable(engine, { clock, signal: stop.signal })) {
      noteAnswer();
      return;
    }
    const now = clock.now();
    if (stop.signal.aborted || (reportedAtMs !== undefined && now - reportedAtMs < AGAIN_MS))
      return;
    reportedAtMs = now;
    report({ type: "engine-unreachable", silentMs: now - answeredAtMs });
  }

  async function lookOften(): Promise<void> {
    const { signal } = stop;
    while (!signal.aborted) {
      try {
        await clock.sleep(EVERY_MS, { signal });
        await look();
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }

  const watching = lookOften();
  // Disposing of the watch throws this error.
  watching.catch(() => {});
  return {
    engine: {
      ...passOn(engine),
      async generate(request, options) {
        // No call was waiting until now, so this was not a silence.
        if (runningCount === 0 && reportedAtMs === undefined) answeredAtMs = clock.now();
        runningCount += 1;
        try {
          const generation = await engine.generate(request, options);
          noteAnswer();
          return generation;
        } finally {
          runningCount -= 1;
        }
      },
    },
    async [Symbol.asyncDispose]() {
      await listeners.settle();
      stop.abort();
      await watching;
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** Copies an engine to a plain object with the same methods. */
export function passOn(engine: Engine): Engine {
  return {
    kind: engine.kind,
    generate: async (request, options) => await engine.generate(request, options),
    ...(engine.score && { score: async (...call) => await engine.score!(...call) }),
    describe: async (options) => await engine.describe(options),
    ...(engine.load && { load: async (options) => await engine.load!(options) }),
    close: async () => await engine.close(),
  };
}

/** True if the engine answers any request. Its load is cheaper to ask for than its description. */
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
