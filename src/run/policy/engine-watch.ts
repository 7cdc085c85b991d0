import type { Engine } from "../../engine/engine.ts";
import { RolloutError, isOwnBug } from "../../errors.ts";
import type { Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { Listeners } from "../schedule/listeners.ts";

/** What is found out about an engine while policy calls wait for it. JSON-able. */
export interface EngineNews {
  /** `engine-back`: it answers again. */
  readonly type: "engine-unreachable" | "engine-back";
  /** For how long it has not answered, or had not, milliseconds. */
  readonly silentMs: number;
}

/** How an engine is watched. */
interface EngineWatchOptions {
  readonly clock: Clock;
  /**
   * Told when the engine is first found unreachable, each minute that it stays so, and when it is back. What it
   * throws or rejects with is no failure of the engine's: whoever disposes of the watch is told.
   */
  readonly onNews: (news: EngineNews) => void;
}

/** An engine that is watched. Disposing it ends the watch, not the engine. */
interface EngineWatch extends AsyncDisposable {
  /** Whose calls are noticed. */
  readonly engine: Engine;
}

/** With the probe's own time an outage is told of within 15 s. */
const EVERY_MS = 5_000;
const PROBE_MS = 4_000;
const AGAIN_MS = 60_000;

/**
 * Watches an engine: where calls wait and none has been answered for some seconds, it is asked whether it
 * is there at all. Long turns and full queues are no news; calls repeat their requests by themselves.
 */
export function watchEngine(engine: Engine, { clock, onNews }: EngineWatchOptions): EngineWatch {
  const stop = new AbortController();
  let runningCount = 0;
  let answeredAtMs = clock.now();
  let toldAtMs: number | undefined;

  let failure: { readonly error: unknown } | undefined;
  const onFailure = (error: unknown): void => void (failure ??= { error });
  const listeners = new Listeners({ signal: stop.signal, onFailure, clock });

  function tell(news: EngineNews): void {
    listeners.tell(`tell of the engine (${news.type})`, () => onNews(news));
  }

  function noteAnswer(): void {
    const now = clock.now();
    if (toldAtMs !== undefined) tell({ type: "engine-back", silentMs: now - answeredAtMs });
    toldAtMs = undefined;
    answeredAtMs = now;
  }

  async function look(): Promise<void> {
    if (runningCount === 0 || clock.now() - answeredAtMs < EVERY_MS) return;
    if (await isReachable(engine, { clock, signal: stop.signal })) {
      noteAnswer();
      return;
    }
    const now = clock.now();
    if (stop.signal.aborted || (toldAtMs !== undefined && now - toldAtMs < AGAIN_MS)) return;
    toldAtMs = now;
    tell({ type: "engine-unreachable", silentMs: now - answeredAtMs });
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
  // Whoever disposes of the watch is told.
  watching.catch(() => {});
  return {
    engine: {
      ...passOn(engine),
      async generate(request, options) {
        // Nobody asked before: that was no silence.
        if (runningCount === 0 && toldAtMs === undefined) answeredAtMs = clock.now();
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

/** An engine as a plain object, whatever it is made of. */
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

/** Whether anything answers. How busy it is costs an engine less to say than what it is. */
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
    // An engine may be anyone's, and heed no signal.
    return await withDeadline(ask, {
      ms: PROBE_MS,
      signal: parent,
      clock,
      onLate: () => false,
    });
  } catch (error) {
    if (parent.aborted) return false;
    if (isOwnBug(error)) throw error;
    // Whatever else is thrown is no answer.
    return error instanceof RolloutError && error.code !== "engine/unreachable";
  }
}
