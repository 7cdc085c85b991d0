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
  /** Default `test-model`. */
  readonly modelPath?: string;
  /** True if stream frames contain only new tokens. Default false. */
  readonly incrementalStreaming?: boolean;
  /** The version of the weights at first. Default `default`. */
  readonly weightVersion?: string;
  /** The model's own end of a turn, which ends one unless it is to be ignored. Default 2. */
  readonly eosTokenId?: number;
  /** Ids are below it. One that is not ends the server, as it ends SGLang. Default: any id is taken. */
  readonly vocabularySize?: number;
  /** True if `/abort_request` gets no answer, as on an engine that hangs. Default false. */
  readonly hangsOnAbort?: boolean;
}

/** Controls of a running SGLang test server. */
export interface SglangTestControls {
  /** As `POST /pause_generation`. */
  pause(mode?: Exclude<PauseMode, "wait">): Promise<void>;
  /** As `POST /continue_generation`. */
  continue(): void;
  /** As `POST /abort_request` with `abort_all`. */
  abortAll(): void;
  /** Changes the version at this moment, without a pause. */
  setWeightVersion(version: string): void;
}

/** A running SGLang test server. */
export interface SglangTestServer extends TestServer<SglangTestControls>, SglangTestControls {}

/**
 * Starts a server that speaks SGLang's protocol as faithfully as a server without a model can: what
 * it says is up to a policy, how it says it is SGLang's. Turns without latency cost microseconds, so
 * it serves load tests as well.
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

/** Everything that a running server consists of. */
interface ServerState extends GenerateContext, ControlContext, ServerCore<DecodedRequest> {
  readonly stats: () => ServerStats;
  readonly hangsOnAbort: boolean;
}

function createServerState(options: SglangTestServerOptions): ServerState {
  const { release = "0.5.23" } = options;
  let version = options.weightVersion ?? "default";
  let modelPath = options.modelPath ?? "test-model";
  let ridCount = 0;
  const weightVersion = (): string => version;
  const core = createServerCore<DecodedRequest>(options, {
    weightVersion,
    // SGLang looks at the budget first.
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
    traits: findRelease(SGLANG_RELEASES, { server: "SGLang", release }),
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
