import { setMaxListeners } from "node:events";
import { RolloutError, UsageError, assertInvariant } from "../../errors.ts";
import type {
  Engine,
  EngineDescription,
  EngineLoad,
  GenerateOptions,
  GenerateRequest,
  Generation,
  LogprobConvention,
  ScoreRequest,
  WorkerLoad,
} from "../engine.ts";
import type { HttpEngineSettings } from "./http-engine-options.ts";
import { checkRequest } from "../check-request.ts";
import { createHttpTransport } from "./http-transport.ts";
import { requestTurn } from "../sample-turn.ts";
import type { SamplingProtocol, ScoringProtocol } from "./sampling-protocol.ts";
import { checkScoreRequest, isNeutral, refuseTempered, scoreIds } from "../score-ids.ts";
import type { Worker } from "./worker-set.ts";
import { createWorkerSet } from "./worker-set.ts";
import { createWireIds } from "./wire-ids.ts";

/** An engine behind HTTP. */
export interface HttpEngine extends Engine {
  load(options?: { signal?: AbortSignal }): Promise<EngineLoad>;
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

/** What one kind of server adds to the rest. */
interface ServerKind {
  readonly protocol: SamplingProtocol;
  /**
   * Asks what the server is.
   *
   * @throws RolloutError as `Engine.describe()` says.
   */
  readonly describe: (workers: readonly Worker[], call: DescribeCall) => Promise<EngineDescription>;
  /**
   * Asks one address how busy it is; `undefined` where it cannot say.
   *
   * @throws RolloutError `engine/unreachable` where nothing answers.
   */
  readonly load: (
    worker: Worker,
    call: { readonly signal: AbortSignal | undefined },
  ) => Promise<readonly WorkerLoad[] | undefined>;
  /** Absent where the server cannot score. */
  readonly scoring?: ScoringKind;
  /** Drops connections of its own; absent where it makes none. */
  readonly close?: () => Promise<void>;
}

/** How one kind of server scores. */
export interface ScoringKind extends ScoringProtocol {
  /**
   * What the logprobs of sampled tokens are of; `undefined` where that cannot be found out.
   *
   * @throws RolloutError as `Engine.describe()` says.
   */
  readonly findConvention: (
    workers: readonly Worker[],
    call: DescribeCall,
  ) => Promise<LogprobConvention | undefined>;
}

/** One call of `describe()`. */
export interface DescribeCall {
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
  /** Samples beside the turns, as `generate()` does. */
  readonly generate: (request: GenerateRequest) => Promise<Generation>;
}

/** An engine behind HTTP that can score. */
export type ScoringHttpEngine = HttpEngine & Required<Pick<Engine, "score">>;

/** Connections for anything but sampling. */
const CONTROL_CONNECTIONS = 16;

/**
 * Connects one kind of server with the rest of an engine: workers, turns, closing. Makes no request
 * by itself. `create` is given the signal that aborts when the engine is closed.
 */
export function createHttpEngine<Kind extends string>(
  kind: Kind,
  settings: HttpEngineSettings,
  create: (closing: AbortSignal) => ServerKind & { readonly scoring: ScoringKind },
): ScoringHttpEngine & { readonly kind: Kind };
export function createHttpEngine<Kind extends string>(
  kind: Kind,
  settings: HttpEngineSettings,
  create: (closing: AbortSignal) => ServerKind,
): HttpEngine & { readonly kind: Kind };
export function createHttpEngine<Kind extends string>(
  kind: Kind,
  settings: HttpEngineSettings,
  create: (closing: AbortSignal) => ServerKind,
): HttpEngine & { readonly kind: Kind } {
  const [first, ...others] = settings.urls.map((url) => toWorker(url, settings));
  assertInvariant(first !== undefined, "Settings hold at least one url");
  const workers = createWorkerSet({
    workers: [first, ...others],
    cooldownMs: settings.workerCooldownMs,
    clock: settings.clock,
  });
  const closing = new AbortController();
  // Each control call under way listens to it.
  setMaxListeners(0, closing.signal);
  /** Calls under way. */
  const running = new Set<Promise<unknown>>();
  const server = create(closing.signal);
  const { scoring } = server;
  const toWireId = createWireIds(settings.random());
  let scoreCount = 0;

  /** Keeps track of a call, so that `close()` can wait for it. */
  function track<T>(call: Promise<T>): Promise<T> {
    running.add(call);
    const forget = (): boolean => running.delete(call);
    call.then(forget, forget);
    return call;
  }

  /** @throws UsageError where whoever calls has closed it. */
  function requireOpen(): void {
    if (!closing.signal.aborted) return;
    const places = workers.workers.map(({ url }) => url).join(", ");
    throw new UsageError(
      `Cannot call engine ${kind} at ${places}: it was closed, expected no call after close()`,
    );
  }

  async function generate(
    request: GenerateRequest,
    { signal, cutShort, onNotCutShort, onTokens }: GenerateOptions = {},
  ): Promise<Generation> {
    requireOpen();
    checkRequest(request);
    const { protocol } = server;
    const options = { signal, cutShort, onNotCutShort, onTokens };
    const context = { workers, settings, protocol, toWireId, closing: closing.signal };
    return track(requestTurn(request, { ...context, ...options }));
  }

  function toDescribeCall(signal: AbortSignal | undefined): DescribeCall {
    const options = signal === undefined ? {} : { signal };
    return { signal, generate: (request) => generate(request, options) };
  }

  async function describe({ signal }: { signal?: AbortSignal } = {}): Promise<EngineDescription> {
    requireOpen();
    return track(server.describe(workers.workers, toDescribeCall(signal)));
  }

  /** For servers that can score. */
  async function score(
    kindOfScoring: ScoringKind,
    request: ScoreRequest,
    signal: AbortSignal | undefined,
  ): Promise<readonly number[]> {
    requireOpen();
    signal?.throwIfAborted();
    const from = checkScoreRequest(request);
    const { temperature = 1 } = request.sampling;
    if (!isNeutral(temperature)) {
      const call = toDescribeCall(signal);
      const convention = await track(kindOfScoring.findConvention(workers.workers, call));
      refuseTempered(temperature, { kind, convention });
    }
    if (from === request.ids.length) return [];
    const requestId = `turnwright-score-${scoreCount++}`;
    const { protocol } = server;
    const asked = { signal, scoring: kindOfScoring, requestId };
    const context = { workers, settings, protocol, toWireId, closing: closing.signal };
    return track(scoreIds({ ids: request.ids, from }, { ...context, ...asked }));
  }

  async function load({ signal }: { signal?: AbortSignal } = {}): Promise<EngineLoad> {
    requireOpen();
    signal?.throwIfAborted();
    const loads: WorkerLoad[] = [];
    const silent: { url: string; reason: string }[] = [];
    const ask = async (worker: Worker): Promise<void> => {
      const { url } = worker;
      try {
        const found = await server.load(worker, { signal });
        if (found === undefined) silent.push({ url, reason: "it does not say how busy it is" });
        else loads.push(...found);
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof RolloutError)) throw error;
        silent.push({ url, reason: error.message });
      }
    };
    await track(Promise.all(workers.workers.map(ask)));
    return { workers: loads, silent };
  }

  async function probe({
    promptIds = [0],
    signal,
  }: { promptIds?: readonly number[]; signal?: AbortSignal } = {}): Promise<EngineDescription> {
    const options = signal === undefined ? {} : { signal };
    const description = await describe(options);
    await generate(toProbe(promptIds), options);
    return description;
  }

  return {
    kind,
    generate,
    ...(scoring && {
      score: (request: ScoreRequest, { signal }: { signal?: AbortSignal } = {}) =>
        score(scoring, request, signal),
    }),
    describe,
    load,
    probe,
    async close() {
      closing.abort();
      await Promise.allSettled(running);
      await Promise.all(
        workers.workers.flatMap(({ transport, control }) => [transport.close(), control.close()]),
      );
      await server.close?.();
    },
  };
}

/** A request for one token. */
export function toProbe(promptIds: readonly number[]): GenerateRequest {
  return {
    promptIds,
    sampling: {},
    maxNewTokens: 1,
    stopTokenIds: [],
    requestId: "turnwright-probe",
    sessionId: "turnwright-probe",
  };
}

/** Opens the ways to one address. */
export function toWorker(url: string, settings: HttpEngineSettings): Worker {
  const { maxReplyBytes, timeouts, redactor } = settings;
  const connect = { url, connectMs: timeouts.connectMs, maxReplyBytes, redactor };
  const transport = createHttpTransport({ ...connect, maxConnections: settings.maxConnections });
  const control = createHttpTransport({ ...connect, maxConnections: CONTROL_CONNECTIONS });
  return { url: transport.url, transport, control };
}
