import type { Clock } from "../engine/clock.ts";
import { systemClock } from "../engine/clock.ts";
import { seededPolicy } from "./seeded-policy.ts";
import type { ServerFault, ServerFaults } from "./server-fault.ts";
import type { ServerPolicy } from "./server-policy.ts";
import type { ConditionWatch } from "./sglang/condition-watch.ts";
import { createConditionWatch } from "./sglang/condition-watch.ts";
import type { ControlContext } from "./sglang/control-routes.ts";
import { CONTROL_ROUTES } from "./sglang/control-routes.ts";
import { createFaultQueue } from "./sglang/fault-queue.ts";
import type { GenerateContext } from "./sglang/generate-route.ts";
import { serveGenerate } from "./sglang/generate-route.ts";
import type { HttpExchange } from "./sglang/http-exchange.ts";
import { readExchange, sendErrorResponse, sendJson } from "./sglang/http-exchange.ts";
import { listen } from "./sglang/listen.ts";
import { createPrefixCache } from "./sglang/prefix-cache.ts";
import type { RecordedRequest } from "./sglang/request-log.ts";
import { createRequestLog } from "./sglang/request-log.ts";
import type { FinishReason, PauseMode } from "./sglang/request-scheduler.ts";
import { RequestScheduler } from "./sglang/request-scheduler.ts";

export type { RecordedRequest } from "./sglang/request-log.ts";

/** Settings of `startSglangTestServer()`. */
export interface SglangTestServerOptions {
  /** What it samples from. Default `seededPolicy()`. */
  readonly policy?: ServerPolicy;
  /** Default 0: any free port. */
  readonly port?: number;
  /** Which requests fail how. Default: none. */
  readonly faults?: ServerFaults;
  /** Where given, requests without it as bearer token are refused. */
  readonly apiKey?: string;
  /** Default `test-model`. */
  readonly modelPath?: string;
  /** Longest prompt and output together, in tokens. Default 131 072. */
  readonly contextLength?: number;
  /** Sequences sampled at a time; further ones wait. Default 4 096. */
  readonly maxRunning?: number;
  /** Time for one token, in milliseconds. Default 0. */
  readonly tokenLatencyMs?: number;
  /** Tokens sampled before the event loop gets a turn, where tokens take no time. Default 64. */
  readonly tokensPerTick?: number;
  /** Whether stream frames bring only what is new. Default false. */
  readonly incrementalStreaming?: boolean;
  /** The version of the weights at first. Default `default`. */
  readonly weightVersion?: string;
  /** Whether replies say which version sampled which tokens, as newer releases do. Default false. */
  readonly reportsVersionSpans?: boolean;
  /** Whether `/abort_request` is never answered, as on an engine that hangs. Default false. */
  readonly hangsOnAbort?: boolean;
  /** How long it takes to notice that a client is gone, in milliseconds; up to 4 000 in reality. Default 0. */
  readonly disconnectPollMs?: number;
  /** Text of ids. Default: `<7><8>`. */
  readonly detokenize?: (ids: readonly number[]) => string;
  /** How many requests `requests` remembers, the latest. Default 1 000. */
  readonly recordLimit?: number;
  /** Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
}

/** Counters. JSON-able. */
export interface ServerStats {
  /** HTTP requests for `/generate`, refused ones included. */
  readonly generateCount: number;
  readonly abortCount: number;
  readonly heldCount: number;
  readonly waitingCount: number;
  readonly runningCount: number;
  /** Sequences that ended, by how. */
  readonly finished: Readonly<Record<FinishReason["type"], number>>;
  readonly sampledTokenCount: number;
}

/** A running test server. */
export interface SglangTestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly stats: ServerStats;
  /** The latest requests, in order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** What the policy complained of: unexpected requests, turns that did not end. */
  readonly problems: readonly string[];
  /** As `POST /pause_generation`. */
  pause(mode?: PauseMode): Promise<void>;
  /** As `POST /continue_generation`. */
  continue(): void;
  /** As `POST /abort_request` with `abort_all`. */
  abortAll(): void;
  /** Changes the version at this moment, without a pause. */
  setWeightVersion(version: string): void;
  /** Adds faults for the next requests; only where faults are a list. */
  addFaults(...faults: readonly (ServerFault | undefined)[]): void;
  /** Waits until a condition on the server holds; looked at whenever something happens to a request. */
  until(condition: (server: SglangTestServer) => boolean): Promise<void>;
  /** Drops all connections and stops listening. */
  close(): Promise<void>;
}

/**
 * Starts a server that speaks SGLang's protocol as faithfully as a server without a model can: what
 * it says is up to a policy, how it says it is SGLang's. Turns without latency cost microseconds, so
 * it serves load tests as well.
 */
export async function startSglangTestServer(
  options: SglangTestServerOptions = {},
): Promise<SglangTestServer> {
  const state = createServerState(options);
  const { scheduler, log, problems, faults, watch } = state;
  const http = await listen(options.port ?? 0, (request, response) => {
    void readExchange(request, response)
      .then((exchange) => route(exchange, state))
      .catch((error: unknown) => {
        // The client went away in the middle of its own request.
        if (!request.destroyed) throw error;
      });
  });
  const close = async (): Promise<void> => {
    await http.close();
    scheduler.continue();
    scheduler.abortAll();
  };
  const server: SglangTestServer = {
    url: http.url,
    port: http.port,
    get stats() {
      return state.stats();
    },
    requests: log.requests,
    problems,
    pause: (mode = "abort") => scheduler.pause(mode),
    continue: () => scheduler.continue(),
    abortAll: () => scheduler.abortAll(),
    setWeightVersion: state.setWeightVersion,
    addFaults: (...more) => faults.add(more),
    until: (condition) => watch.until(() => condition(server)),
    close,
    [Symbol.asyncDispose]: close,
  };
  return server;
}

async function route(exchange: HttpExchange, state: ServerState): Promise<void> {
  const { path, request } = exchange;
  const isOpen = path.startsWith("/health") || path === "/test/stats";
  const { apiKey } = state;
  if (apiKey !== undefined && !isOpen && request.headers.authorization !== `Bearer ${apiKey}`) {
    sendJson(exchange, { error: "Unauthorized" }, { status: 401 });
    return;
  }
  if (path === "/generate") {
    state.counts.generate += 1;
    await serveGenerate(exchange, state);
  } else {
    if (path === "/abort_request") state.counts.abort += 1;
    if (path === "/abort_request" && state.hangsOnAbort) return;
    const handler = CONTROL_ROUTES[path];
    if (handler === undefined) sendJson(exchange, { detail: "Not Found" }, { status: 404 });
    else await handleControl(handler, exchange, state);
  }
  state.watch.notify();
}

async function handleControl(
  handler: (exchange: HttpExchange, state: ServerState) => void | Promise<void>,
  exchange: HttpExchange,
  state: ServerState,
): Promise<void> {
  try {
    await handler(exchange, state);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { message } = error;
    sendErrorResponse(exchange, { status: 400, message, type: "Bad Request" });
  }
}

/** Everything that a running server consists of. */
interface ServerState extends GenerateContext, ControlContext {
  readonly apiKey: string | undefined;
  readonly hangsOnAbort: boolean;
  readonly problems: readonly string[];
  readonly counts: { generate: number; abort: number };
  readonly watch: ConditionWatch;
  readonly stats: () => ServerStats;
}

function createServerState(options: SglangTestServerOptions): ServerState {
  let weightVersion = options.weightVersion ?? "default";
  let ridCount = 0;
  const problems: string[] = [];
  const watch = createConditionWatch();
  const log = createRequestLog(options.recordLimit ?? 1_000);
  const counts = { generate: 0, abort: 0 };
  const scheduler = new RequestScheduler({
    policy: options.policy ?? seededPolicy(),
    maxRunning: options.maxRunning ?? 4_096,
    tokenLatencyMs: options.tokenLatencyMs ?? 0,
    tokensPerTick: options.tokensPerTick ?? 64,
    sleep: options.sleep ?? systemClock.sleep,
    weightVersion: () => weightVersion,
    onComplaint: (message) => problems.push(message),
    onChange: () => watch.notify(),
  });
  return {
    scheduler,
    problems,
    watch,
    log,
    counts,
    faults: createFaultQueue(options.faults ?? []),
    cache: createPrefixCache(),
    apiKey: options.apiKey,
    hangsOnAbort: options.hangsOnAbort ?? false,
    modelPath: options.modelPath ?? "test-model",
    contextLength: options.contextLength ?? 131_072,
    incrementalStreaming: options.incrementalStreaming ?? false,
    reportsVersionSpans: options.reportsVersionSpans ?? false,
    disconnectPollMs: options.disconnectPollMs ?? 0,
    detokenize: options.detokenize ?? ((ids) => ids.map((id) => `<${id}>`).join("")),
    weightVersion: () => weightVersion,
    setWeightVersion: (version) => {
      weightVersion = version;
    },
    newRid: () => `server-${ridCount++}`,
    stats: () => ({
      generateCount: counts.generate,
      abortCount: counts.abort,
      heldCount: scheduler.heldCount,
      waitingCount: scheduler.waitingCount,
      runningCount: scheduler.runningCount,
      finished: { ...log.finished },
      sampledTokenCount: log.sampledTokenCount,
    }),
  };
}
