import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../engine/clock.ts";
import { systemClock } from "../engine/clock.ts";
import { seededPolicy } from "./seeded-policy.ts";
import type { FaultRequest, ServerFault, ServerFaults } from "./server-fault.ts";
import type { ServerPolicy } from "./server-policy.ts";
import { CONTROL_ROUTES } from "./sglang/control-routes.ts";
import type { GenerateContext } from "./sglang/generate-route.ts";
import { serveGenerate } from "./sglang/generate-route.ts";
import type { HttpExchange } from "./sglang/http-exchange.ts";
import { readExchange, sendErrorResponse, sendJson } from "./sglang/http-exchange.ts";
import type { DecodedRequest } from "./sglang/request-decoding.ts";
import type { FinishReason, LiveSequence, PauseMode } from "./sglang/request-scheduler.ts";
import { RequestScheduler } from "./sglang/request-scheduler.ts";

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
  /** How many requests `requests` remembers, the latest. Default 10 000. */
  readonly recordLimit?: number;
  /** Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
}

/** One sequence that the server was asked for. */
export interface RecordedRequest {
  readonly rid: string;
  readonly routingKey: string | undefined;
  readonly inputIds: readonly number[];
  readonly samplingParams: Readonly<Record<string, unknown>>;
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  /** Absent until it is finished, and where a fault answered instead. */
  finish?: FinishReason;
  /** What was sampled. */
  outputIds?: readonly number[];
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
  const http = createServer((request, response) => {
    void readExchange(request, response)
      .then((exchange) => route(exchange, state))
      .catch((error: unknown) => {
        // The client went away in the middle of its own request.
        if (!request.destroyed) throw error;
      });
  });
  // Connections that a client keeps idle must not be closed under its next request.
  http.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = http.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!http.listening) return;
    const closed = new Promise((resolve) => {
      http.close(resolve);
    });
    http.closeAllConnections();
    state.scheduler.continue();
    state.scheduler.abortAll();
    await closed;
  };
  const server: SglangTestServer = {
    url: `http://127.0.0.1:${port}`,
    port,
    get stats() {
      return state.stats();
    },
    requests: state.requests,
    problems: state.problems,
    pause: (mode = "abort") => state.scheduler.pause(mode),
    continue: () => state.scheduler.continue(),
    abortAll: () => state.scheduler.abortAll(),
    setWeightVersion: state.setWeightVersion,
    addFaults: (...faults) => state.addFaults(faults),
    until: (condition) => state.until(() => condition(server)),
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
    state.countGenerate();
    await serveGenerate(exchange, state);
  } else {
    if (path === "/abort_request") state.countAbort();
    if (path === "/abort_request" && state.hangsOnAbort) return;
    const handler = CONTROL_ROUTES[path];
    if (handler === undefined) sendJson(exchange, { detail: "Not Found" }, { status: 404 });
    else await handleControl(handler, exchange, state);
  }
  state.notify();
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

/** Everything that changes while a server runs. */
interface ServerState extends GenerateContext {
  readonly apiKey: string | undefined;
  readonly modelPath: string;
  readonly hangsOnAbort: boolean;
  readonly requests: readonly RecordedRequest[];
  readonly problems: readonly string[];
  readonly setWeightVersion: (version: string) => void;
  readonly clearCache: () => void;
  readonly addFaults: (faults: readonly (ServerFault | undefined)[]) => void;
  readonly countGenerate: () => void;
  readonly countAbort: () => void;
  readonly stats: () => ServerStats;
  readonly until: (condition: () => boolean) => Promise<void>;
  readonly notify: () => void;
}

function createServerState(options: SglangTestServerOptions): ServerState {
  const { faults = [], recordLimit = 10_000 } = options;
  let weightVersion = options.weightVersion ?? "default";
  let ridCount = 0;
  let faultIndex = 0;
  let generateCount = 0;
  let abortCount = 0;
  let sampledTokenCount = 0;
  const finished = { stop: 0, length: 0, abort: 0 };
  const queuedFaults = typeof faults === "function" ? [] : [...faults];
  const requests: RecordedRequest[] = [];
  const byRid = new Map<string, RecordedRequest>();
  const problems: string[] = [];
  const cache = new Map<string, readonly number[]>();
  const waiters = new Set<() => void>();
  const notify = (): void => {
    for (const waiter of waiters) waiter();
  };
  const scheduler = new RequestScheduler({
    policy: options.policy ?? seededPolicy(),
    maxRunning: options.maxRunning ?? 4_096,
    tokenLatencyMs: options.tokenLatencyMs ?? 0,
    tokensPerTick: options.tokensPerTick ?? 64,
    sleep: options.sleep ?? systemClock.sleep,
    weightVersion: () => weightVersion,
    onComplaint: (message) => problems.push(message),
    onChange: () => notify(),
  });

  return {
    scheduler,
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
    nextFault: (request: FaultRequest) =>
      (typeof faults === "function" ? faults(request, faultIndex++) : queuedFaults.shift()) ??
      undefined,
    addFaults: (more) => queuedFaults.push(...more),
    clearCache: () => cache.clear(),
    cachedTokenCount: ({ routingKey = "", inputIds }) => {
      const count = commonPrefixLength(cache.get(routingKey) ?? [], inputIds);
      cache.set(routingKey, inputIds);
      return count;
    },
    requests,
    problems,
    onDecoded: (request, routingKey) => {
      const record = toRecord(request, routingKey);
      byRid.set(request.rid, record);
      requests.push(record);
      if (requests.length > recordLimit) requests.shift();
    },
    onFinished: (sequence: LiveSequence) => {
      const record = byRid.get(sequence.request.rid);
      byRid.delete(sequence.request.rid);
      sampledTokenCount += sequence.outputIds.length;
      if (sequence.finish === undefined || record === undefined) return;
      finished[sequence.finish.type] += 1;
      record.finish = sequence.finish;
      record.outputIds = sequence.outputIds;
    },
    countGenerate: () => {
      generateCount += 1;
      queueMicrotask(notify);
    },
    countAbort: () => {
      abortCount += 1;
    },
    stats: () => ({
      generateCount,
      abortCount,
      heldCount: scheduler.heldCount,
      waitingCount: scheduler.waitingCount,
      runningCount: scheduler.runningCount,
      finished: { ...finished },
      sampledTokenCount,
    }),
    notify,
    until: (condition) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!condition()) return;
          waiters.delete(check);
          resolve();
        };
        waiters.add(check);
        check();
      }),
  };
}

function toRecord(request: DecodedRequest, routingKey: string | undefined): RecordedRequest {
  const { rid, inputIds, samplingParams, maxNewTokens, stopTokenIds } = request;
  return { rid, routingKey, inputIds, samplingParams, maxNewTokens, stopTokenIds };
}

function commonPrefixLength(left: readonly number[], right: readonly number[]): number {
  const limit = Math.min(left.length, right.length);
  let length = 0;
  while (length < limit && left[length] === right[length]) length++;
  return length;
}
