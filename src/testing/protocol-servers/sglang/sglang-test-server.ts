import { createColumnModel, type TestColumns } from "../shared/column-model.ts";
import { findRelease } from "../shared/find-release.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";
import type { PauseMode } from "../shared/request-scheduler.ts";
import type {
  ServerCore,
  ServerStats,
  TestServer,
  TestServerOptions,
} from "../shared/server-core.ts";
import { createServerCore, startServing } from "../shared/server-core.ts";
import type { ControlContext } from "./control-routes.ts";
import { CONTROL_ROUTES, sendLoads } from "./control-routes.ts";
import { sendErrorResponse } from "./error-replies.ts";
import type { GenerateContext } from "./generate-route.ts";
import { serveGenerate } from "./generate-route.ts";
import type { SglangRelease } from "./releases.ts";
import { SGLANG_RELEASES } from "./releases.ts";
import type { DecodedRequest } from "./request-decoding.ts";

export type { RecordedRequest } from "../shared/request-log.ts";
export type { ServerStats } from "../shared/server-core.ts";

/** Settings of `startSglangTestServer()`. */
export interface SglangTestServerOptions extends TestServerOptions {
  /** The release to imitate. Default `0.5.23`. */
  readonly release?: SglangRelease;
  /** The model's path in replies. Default `test-model`. */
  readonly modelPath?: string;
  /** True if stream frames contain only new tokens. Default false. */
  readonly incrementalStreaming?: boolean;
  /** The initial version of the weights. Default `default`. */
  readonly weightVersion?: string;
  /** The id that ends a turn, unless the request ignores it. Default 2. */
  readonly eosTokenId?: number;
  /**
   * The number of ids. A higher id stops the server, as it stops SGLang. Default: any id is
   * accepted.
   */
  readonly vocabularySize?: number;
  /**
   * The side columns that the server returns. Default: kept tokens up to 4 096, as in 0.5.23, and top
   * logprobs.
   */
  readonly columns?: TestColumns;
  /** True if `/abort_request` gets no answer, as on an engine that hangs. Default false. */
  readonly hangsOnAbort?: boolean;
}

/** Controls of a running SGLang test server. */
export interface SglangTestControls {
  /** Pauses as `POST /pause_generation` does. */
  pause(mode?: Exclude<PauseMode, "wait">): Promise<void>;
  /** Continues as `POST /continue_generation` does. */
  continue(): void;
  /** Aborts as `POST /abort_request` with `abort_all` does. */
  abortAll(): void;
  /** Changes the version of the weights immediately, without a pause. */
  setWeightVersion(version: string): void;
}

/** A running SGLang test server. */
export interface SglangTestServer extends TestServer<SglangTestControls>, SglangTestControls {}

/**
 * Starts a server with SGLang's protocol, without a model. A policy decides the tokens, and the
 * server reproduces the form of SGLang's replies. Turns without latency take microseconds, so the
 * server is also fit for load tests.
 */
export async function startSglangTestServer(
  options: SglangTestServerOptions = {},
): Promise<SglangTestServer> {
  const state = createServerState(options);
  const { scheduler } = state;
  return await startServing<DecodedRequest, SglangTestControls>(state, {
    port: options.port,
    route: (exchange) => route(exchange, state),
    controls: {
      pause: (mode = "abort") => scheduler.pause(mode),
      continue: () => scheduler.continue(),
      abortAll: () => scheduler.abortAll(),
      setWeightVersion: state.setWeightVersion,
    },
  });
}

async function route(exchange: HttpExchange, state: ServerState): Promise<void> {
  const { path, request } = exchange;
  if (state.isDead) {
    request.socket.destroy();
    return;
  }
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
    const { loadPaths } = state.traits;
    const handler = loadPaths.includes(path) ? sendLoads : CONTROL_ROUTES[path];
    if (handler === undefined) sendJson(exchange, { detail: "Not Found" }, { status: 404 });
    else await handleControl(handler, exchange, state);
  }
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

/** The state of a running server. */
interface ServerState extends GenerateContext, ControlContext, ServerCore<DecodedRequest> {
  readonly stats: () => ServerStats;
  readonly hangsOnAbort: boolean;
}

function createServerState(options: SglangTestServerOptions): ServerState {
  const { release = "0.5.23", columns = {} } = options;
  const traits = findRelease(SGLANG_RELEASES, { server: "SGLang", release });
  let version = options.weightVersion ?? "default";
  let modelPath = options.modelPath ?? "test-model";
  let ridCount = 0;
  const weightVersion = (): string => version;
  const core = createServerCore<DecodedRequest>(options, {
    weightVersion,
    // SGLang checks the budget before the stop ids.
    stopsBeforeBudget: false,
  });
  return {
    ...core,
    hangsOnAbort: options.hangsOnAbort ?? false,
    modelPath: () => modelPath,
    setModelPath: (changed) => {
      modelPath = changed;
    },
    incrementalStreaming: options.incrementalStreaming ?? false,
    traits,
    columns: {
      ...(traits.keepsTokens && { keptTokens: { maxCount: 4_096 } }),
      ...columns,
      model: columns.model ?? createColumnModel(columns),
    },
    vocabularySize: options.vocabularySize ?? Number.POSITIVE_INFINITY,
    eosTokenId: options.eosTokenId ?? 2,
    isDead: false,
    weightVersion,
    setWeightVersion: (changed) => {
      version = changed;
    },
    newRid: () => `server-${ridCount++}`,
  };
}
