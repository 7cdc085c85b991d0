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
  TopScoreRequest,
  WorkerLoad,
} from "../engine.ts";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import type { HttpEngineSettings } from "./http-engine-options.ts";
import { checkRequest, checkScoreRequest, checkTopCount } from "../check-request.ts";
import { createHttpTransport } from "./http-transport.ts";
import { requestTurn } from "../sample-turn.ts";
import type { SamplingProtocol, ScoringProtocol } from "./sampling-protocol.ts";
import { requireColumns } from "../require-columns.ts";
import { toProbe } from "../to-probe.ts";
import { isNeutral, refuseTempered, scoreIds } from "../score-ids.ts";
import type { Worker } from "./worker-set.ts";
import { createWorkerSet } from "./worker-set.ts";
import { createWireIds } from "./wire-ids.ts";

/** An engine that is reached over HTTP. */
export interface HttpEngine extends Engine {
  load(options?: { signal?: AbortSignal }): Promise<EngineLoad>;
  /**
   * Requests the server's description and samples one token, to check before a run that ids,
   * logprobs and the given columns arrive. `promptIds` must be ids of the model. Default `[0]`.
   *
   * @throws RolloutError as `generate()` does.
   * @throws UsageError as `requireColumns()` does.
   */
  probe(options?: {
    promptIds?: readonly number[];
    columns?: ColumnSpecs;
    signal?: AbortSignal;
  }): Promise<EngineDescription>;
}

/** The parts of an engine that differ between kinds of servers. */
interface ServerKind {
  readonly protocol: SamplingProtocol;
  /**
   * Requests the server's description.
   *
   * @throws RolloutError as `Engine.describe()` says.
   */
  readonly describe: (workers: readonly Worker[], call: DescribeCall) => Promise<EngineDescription>;
  /**
   * Requests the load of one address. Returns `undefined` if the server cannot report it.
   *
   * @throws RolloutError `engine/unreachable` if nothing answers.
   */
  readonly load: (
    worker: Worker,
    call: { readonly signal: AbortSignal | undefined },
  ) => Promise<readonly WorkerLoad[] | undefined>;
  /** The scoring. Absent if the server cannot score. */
  readonly scoring?: ScoringKind;
  /**
   * Closes connections besides those to the workers. SGLang has such connections to abort calls at the workers of a
   * router.
   */
  readonly close?: () => Promise<void>;
}

/** The scoring of one kind of server. */
export interface ScoringKind extends ScoringProtocol {
  /**
   * Finds the convention of the logprobs of sampled tokens. Returns `undefined` if it cannot be
   * determined.
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
  /** Samples tokens, as `Engine.generate()` does. */
  readonly generate: (request: GenerateRequest) => Promise<Generation>;
}

/** An engine that is reached over HTTP and can score. */
export type ScoringHttpEngine = HttpEngine & Required<Pick<Engine, "score" | "scoreTop">>;

/** Number of connections for control calls. */
const CONTROL_CONNECTIONS = 16;

/**
 * Builds an engine for one kind of server: workers, turns, closing. Makes no request itself.
 * `create` receives the signal that aborts when the engine is closed.
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
  // Each pending control call listens to the signal.
  setMaxListeners(0, closing.signal);
  /** Pending calls. */
  const running = new Set<Promise<unknown>>();
  const server = create(closing.signal);
  const { scoring } = server;
  const toWireId = createWireIds(settings.random());
  let scoreCount = 0;

  /** Records a pending call, so that `close()` can wait for it. */
  function track<T>(call: Promise<T>): Promise<T> {
    running.add(call);
    const forget = (): boolean => running.delete(call);
    call.then(forget, forget);
    return call;
  }

  /**
   * Requires that the engine is not closed.
   *
   * @throws UsageError if the caller has closed the engine.
   */
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

  /** Scores ids, for servers that can score. */
  async function score(
    kindOfScoring: ScoringKind,
    { topCount, ...request }: ScoreRequest & Partial<TopScoreRequest>,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly logprobs: readonly number[]; readonly tops?: Uint8Array }> {
    requireOpen();
    signal?.throwIfAborted();
    const from = checkScoreRequest(request);
    if (topCount !== undefined) checkTopCount(topCount);
    const { temperature = 1 } = request.sampling;
    if (!isNeutral(temperature)) {
      const call = toDescribeCall(signal);
      const convention = await track(kindOfScoring.findConvention(workers.workers, call));
      refuseTempered(temperature, { kind, convention });
    }
    if (from === request.ids.length) return { logprobs: [], tops: new Uint8Array() };
    const requestId = `turnwright-score-${scoreCount++}`;
    const { protocol } = server;
    const call = { signal, scoring: kindOfScoring, requestId };
    const context = { workers, settings, protocol, toWireId, closing: closing.signal };
    const asked = { ids: request.ids, from, ...(topCount !== undefined && { topCount }) };
    return track(scoreIds(asked, { ...context, ...call }));
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
    columns,
    signal,
  }: {
    promptIds?: readonly number[];
    columns?: ColumnSpecs;
    signal?: AbortSignal;
  } = {}): Promise<EngineDescription> {
    const options = signal === undefined ? {} : { signal };
    const description = await describe(options);
    if (columns === undefined) await generate(toProbe(promptIds), options);
    else
      await requireColumns({ ...engine, describe: async () => description }, columns, {
        promptIds,
        ...options,
      });
    return description;
  }

  const engine: HttpEngine & { readonly kind: Kind } = {
    kind,
    generate,
    ...(scoring && {
      score: async (request: ScoreRequest, { signal }: { signal?: AbortSignal } = {}) =>
        (await score(scoring, request, signal)).logprobs,
      scoreTop: async (request: TopScoreRequest, { signal }: { signal?: AbortSignal } = {}) => {
        const { logprobs, tops } = await score(scoring, request, signal);
        assertInvariant(tops !== undefined, "Scores with tops were checked");
        return { logprobs, tops };
      },
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
  return engine;
}

/** Opens the connections to one address. */
export function toWorker(url: string, settings: HttpEngineSettings): Worker {
  const { maxReplyBytes, timeouts, redactor } = settings;
  const connect = { url, connectMs: timeouts.connectMs, maxReplyBytes, redactor };
  const transport = createHttpTransport({ ...connect, maxConnections: settings.maxConnections });
  const control = createHttpTransport({ ...connect, maxConnections: CONTROL_CONNECTIONS });
  return { url: transport.url, transport, control };
}
