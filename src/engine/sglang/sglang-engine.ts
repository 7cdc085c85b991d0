import { setMaxListeners } from "node:events";
import { assertInvariant } from "../../errors.ts";
import type { Engine, EngineDescription, GenerateRequest, Generation } from "../engine.ts";
import { createHttpTransport } from "../http-transport.ts";
import { describeSglang } from "./describe-sglang.ts";
import { createRequestAborter } from "./request-aborter.ts";
import { sampleTurn } from "./sample-turn.ts";
import type { SglangEngineOptions, SglangSettings } from "./sglang-options.ts";
import { toSglangSettings } from "./sglang-options.ts";
import type { Worker } from "./worker-set.ts";
import { createWorkerSet } from "./worker-set.ts";

/** An SGLang server, its router, or several servers. */
export interface SglangEngine extends Engine {
  readonly kind: "sglang";
  /**
   * Asks the server what it is and samples one token, to find out before a run whether ids and
   * logprobs come through. `promptIds` must be ids of the model's; default `[0]`.
   *
   * @throws RolloutError as `generate()` does.
   */
  probe(options?: {
    promptIds?: readonly number[];
    signal?: AbortSignal;
  }): Promise<EngineDescription>;
}

/** Connections for anything but sampling. */
const CONTROL_CONNECTIONS = 16;

/**
 * Connects to SGLang. Makes no request by itself.
 *
 * Each turn is one `POST /generate`, not streamed. A version that changes while a request runs
 * (an update without interruption) shows only as the version at its end, because that is all that
 * the engine reports.
 *
 * @throws UsageError for options that cannot be used.
 */
export function createSglangEngine(options: SglangEngineOptions): SglangEngine {
  const settings = toSglangSettings(options);
  const [first, ...others] = settings.urls.map((url) => toWorker(url, settings));
  assertInvariant(first !== undefined, "Settings hold at least one url");
  const workers = createWorkerSet({
    workers: [first, ...others],
    cooldownMs: settings.workerCooldownMs,
    clock: settings.clock,
  });
  const closing = new AbortController();
  // Each call under way listens to it.
  setMaxListeners(0, closing.signal);
  const running = new Set<Promise<unknown>>();
  const aborter = createRequestAborter(settings);

  /** Keeps track of a call, so that `close()` can wait for its end. */
  function track<T>(call: Promise<T>): Promise<T> {
    running.add(call);
    const forget = (): boolean => running.delete(call);
    call.then(forget, forget);
    return call;
  }

  async function generate(
    request: GenerateRequest,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<Generation> {
    assertInvariant(!closing.signal.aborted, "The engine takes no calls after close()");
    assertInvariant(request.maxNewTokens >= 1, "maxNewTokens is at least 1");
    const { abortRequest } = aborter;
    const context = { workers, settings, abortRequest, signal, closing: closing.signal };
    return track(sampleTurn(request, context));
  }

  async function describe({ signal }: { signal?: AbortSignal } = {}): Promise<EngineDescription> {
    assertInvariant(!closing.signal.aborted, "The engine takes no calls after close()");
    const context = { settings, signal, closing: closing.signal };
    const { description, isRouter } = await track(describeSglang(workers.workers, context));
    if (isRouter) aborter.giveUp();
    return description;
  }

  async function probe({
    promptIds = [0],
    signal,
  }: { promptIds?: readonly number[]; signal?: AbortSignal } = {}): Promise<EngineDescription> {
    const options = signal === undefined ? {} : { signal };
    const description = await describe(options);
    await generate(toProbe(promptIds, settings.random()), options);
    return description;
  }

  return {
    kind: "sglang",
    generate,
    describe,
    probe,
    async close() {
      closing.abort();
      await Promise.allSettled(running);
      await Promise.all(
        workers.workers.flatMap(({ transport, control }) => [transport.close(), control.close()]),
      );
    },
  };
}

/** A request for one token. `unique` keeps apart what several processes ask at once. */
function toProbe(promptIds: readonly number[], unique: number): GenerateRequest {
  return {
    promptIds,
    sampling: {},
    maxNewTokens: 1,
    stopTokenIds: [],
    requestId: `turnwright-probe-${unique}`,
    sessionId: "turnwright-probe",
  };
}

function toWorker(url: string, settings: SglangSettings): Worker {
  const { maxReplyBytes, timeouts } = settings;
  const connect = { url, connectMs: timeouts.connectMs, maxReplyBytes };
  const transport = createHttpTransport({ ...connect, maxConnections: settings.maxConnections });
  const control = createHttpTransport({ ...connect, maxConnections: CONTROL_CONNECTIONS });
  return { url: transport.url, transport, control };
}
