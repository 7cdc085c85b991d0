import { createColumnModel, type TestColumns } from "../shared/column-model.ts";
import { findRelease } from "../shared/find-release.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson } from "../shared/http-exchange.ts";
import type { TestServer, TestServerOptions } from "../shared/server-core.ts";
import { createServerCore, startServing } from "../shared/server-core.ts";
import type { ControlContext } from "./control-routes.ts";
import {
  CONTROL_ROUTES,
  DEVELOPMENT_ROUTES,
  TOKENS_ROUTES,
  serveControl,
} from "./control-routes.ts";
import { sendDisabled, sendNoSuchRoute } from "./error-replies.ts";
import type { VllmRelease } from "./releases.ts";
import { VLLM_RELEASES } from "./releases.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";
import { decodeCompletions, decodeGenerate } from "./request-decoding.ts";
import { serveSampling } from "./sampling-routes.ts";

/** Settings of `startVllmTestServer()`. */
export interface VllmTestServerOptions extends TestServerOptions {
  /** The release to imitate. Default `0.32`. */
  readonly release?: VllmRelease;
  /** The name of the model, and then the names of LoRA adapters. Default `["test-model"]`. */
  readonly servedModels?: readonly string[];
  /** The APIs of the server. Default: both, as with `--enable-scale-out`. */
  readonly apis?: readonly ("generate" | "completions")[];
  /** True if the server has the control paths of `VLLM_SERVER_DEV_MODE=1`. Default false. */
  readonly isDevelopment?: boolean;
  /** True if `/server_info` works on a server in development mode. Default true. */
  readonly answersServerInfo?: boolean;
  /** The number of ids. Higher ids in a prompt are refused. Default: any id is accepted. */
  readonly vocabularySize?: number;
  /**
   * The kind of the reported logprobs: before (`raw_logprobs`, the default) or after the sampling
   * transforms.
   */
  readonly logprobsMode?: "raw_logprobs" | "processed_logprobs";
  /** The id that ends a turn. Default 2. */
  readonly eosTokenId?: number;
  /** True if `usage` has the number of cached prompt tokens. Default false. */
  readonly reportsCachedTokens?: boolean;
  /** The initial version of the weights. Default `default`. */
  readonly weightVersion?: string;
  /** The side columns that the server returns with each reply. Default: top logprobs only. */
  readonly columns?: TestColumns;
}

/** Controls of a running vLLM test server. */
export interface VllmTestControls {
  /** Pauses as `POST /pause` does. */
  pause(mode?: "abort" | "wait" | "keep"): Promise<void>;
  /** Continues as `POST /resume` does. */
  resume(): void;
  /** Aborts all requests, as `POST /abort_requests` does. */
  abortAll(): void;
  /** Changes the version of the weights immediately, without a pause. */
  setWeightVersion(version: string): void;
}

/** A running vLLM test server. */
export interface VllmTestServer extends TestServer<VllmTestControls>, VllmTestControls {}

/** Paths that need the API key. */
const GUARDED = ["/v1", "/v2", "/inference"];

/**
 * Starts a server with vLLM's protocol, without a model. A policy decides the tokens, and the
 * server reproduces the form of vLLM's replies.
 */
export async function startVllmTestServer(
  options: VllmTestServerOptions = {},
): Promise<VllmTestServer> {
  const state = createServerState(options);
  const { scheduler } = state;
  return await startServing<VllmSequenceRequest, VllmTestControls>(state, {
    port: options.port,
    route: (exchange) => route(exchange, state),
    controls: {
      pause: (mode = "abort") => scheduler.pause(mode === "keep" ? "in_place" : mode),
      resume: () => scheduler.continue(),
      abortAll: () => void scheduler.dropAll(),
      setWeightVersion: state.setWeightVersion,
    },
  });
}

/** The state of a running server. */
interface ServerState extends ControlContext {
  readonly apis: readonly string[];
  readonly isDevelopment: boolean;
}

async function route(exchange: HttpExchange, state: ServerState): Promise<void> {
  const { path, request } = exchange;
  const { apiKey, counts, apis, traits } = state;
  const isGuarded = GUARDED.some((prefix) => path.startsWith(prefix));
  if (apiKey !== undefined && isGuarded && request.headers.authorization !== `Bearer ${apiKey}`) {
    sendJson(exchange, { error: "Unauthorized" }, { status: 401 });
    return;
  }
  const api = SAMPLING_PATHS[path];
  if (api !== undefined && apis.includes(api)) {
    if (exchange.method !== "POST") {
      sendNoSuchRoute(exchange, 405);
      return;
    }
    counts.generate += 1;
    const decode = api === "generate" ? decodeGenerate : decodeCompletions;
    await serveSampling(exchange, { decode, context: state });
    return;
  }
  if (ABORT_PATHS.has(path)) counts.abort += 1;
  if (traits.refusesDisabledPaths && !apis.includes("generate") && TOKENS_PATHS.has(path)) {
    sendDisabled(exchange);
    return;
  }
  await serveControl(routesOf(state), exchange, state);
}

function routesOf({ apis, isDevelopment, traits }: ServerState): typeof CONTROL_ROUTES {
  return {
    ...CONTROL_ROUTES,
    ...(traits.hasTokensOutput && apis.includes("generate") && TOKENS_ROUTES),
    ...(isDevelopment && DEVELOPMENT_ROUTES),
  };
}

const ABORT_PATHS = new Set(["/abort_requests", "/inference/v1/abort_requests"]);

/** The paths that `--enable-scale-out` enables. */
const TOKENS_PATHS = new Set(["/inference/v1/generate", "/inference/v1/abort_requests"]);

const SAMPLING_PATHS: Readonly<Record<string, "generate" | "completions">> = {
  "/inference/v1/generate": "generate",
  "/v1/completions": "completions",
};

function createServerState(options: VllmTestServerOptions): ServerState {
  let version = options.weightVersion ?? "default";
  let idCount = 0;
  const { servedModels = ["test-model"], release = "0.32", columns = {} } = options;
  const core = createServerCore<VllmSequenceRequest>(options, {
    weightVersion: () => version,
    stopsBeforeBudget: true,
  });
  return {
    ...core,
    traits: findRelease(VLLM_RELEASES, { server: "vLLM", release }),
    columns: { ...columns, model: columns.model ?? createColumnModel(columns) },
    vocabularySize: options.vocabularySize,
    answersServerInfo: options.answersServerInfo ?? true,
    servedModels,
    modelName: servedModels[0] ?? "test-model",
    apis: options.apis ?? ["generate", "completions"],
    isDevelopment: options.isDevelopment ?? false,
    logprobsMode:
      options.logprobsMode ?? (columns.keptTokens ? "processed_logprobs" : "raw_logprobs"),
    eosTokenId: options.eosTokenId ?? 2,
    reportsCachedTokens: options.reportsCachedTokens ?? false,
    liveNames: new Map(),
    weightVersion: () => version,
    setWeightVersion: (changed) => {
      version = changed;
    },
    newId: () => `server-${idCount++}`,
    toUniqueName: (name) => (core.scheduler.isLive(name) ? `${name}~${idCount++}` : name),
  };
}
