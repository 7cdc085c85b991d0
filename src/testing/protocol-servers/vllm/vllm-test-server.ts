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
  /** Whose behaviour it has. Default `0.32`. */
  readonly release?: VllmRelease;
  /** Names of the model and, after it, of LoRA adapters. Default `["test-model"]`. */
  readonly servedModels?: readonly string[];
  /**
   * Which of the ways to send and get ids it has. Default both, as `--enable-scale-out` makes it.
   */
  readonly apis?: readonly ("generate" | "completions")[];
  /** Whether it has the control paths of `VLLM_SERVER_DEV_MODE=1`. Default false. */
  readonly isDevelopment?: boolean;
  /** Whether `/server_info`, of servers in development mode, can be answered. Default true. */
  readonly answersServerInfo?: boolean;
  /** Ids are below it, in the prompt. Default: any id is taken. */
  readonly vocabularySize?: number;
  /** What the reported logprobs are of: the policy's as they are, or after the sampling transforms. Default raw. */
  readonly logprobsMode?: "raw_logprobs" | "processed_logprobs";
  /** The model's own end of a turn. Default 2. */
  readonly eosTokenId?: number;
  /** Whether `usage` says how much of the prompt was cached. Default false. */
  readonly reportsCachedTokens?: boolean;
  /** The version of the weights at first. Default `default`. */
  readonly weightVersion?: string;
}

/** What can be done to a running vLLM test server. */
export interface VllmTestControls {
  /** As `POST /pause`. */
  pause(mode?: "abort" | "wait" | "keep"): Promise<void>;
  /** As `POST /resume`. */
  resume(): void;
  /** As `POST /abort_requests` for all. */
  abortAll(): void;
  /** Changes the version at this moment, without a pause. */
  setWeightVersion(version: string): void;
}

/** A running vLLM test server. */
export interface VllmTestServer extends TestServer<VllmTestControls>, VllmTestControls {}

/** Paths that need the key. */
const GUARDED = ["/v1", "/v2", "/inference"];

/**
 * Starts a server that speaks vLLM's protocol as faithfully as a server without a model can: what it
 * says is up to a policy, how it says it is vLLM's.
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

/** Everything that a running server consists of. */
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

/** Paths that `--enable-scale-out` opens. */
const TOKENS_PATHS = new Set(["/inference/v1/generate", "/inference/v1/abort_requests"]);

const SAMPLING_PATHS: Readonly<Record<string, "generate" | "completions">> = {
  "/inference/v1/generate": "generate",
  "/v1/completions": "completions",
};

function createServerState(options: VllmTestServerOptions): ServerState {
  let version = options.weightVersion ?? "default";
  let idCount = 0;
  const { servedModels = ["test-model"], release = "0.32" } = options;
  const core = createServerCore<VllmSequenceRequest>(options, {
    weightVersion: () => version,
    stopsBeforeBudget: true,
  });
  return {
    ...core,
    traits: findRelease(VLLM_RELEASES, { server: "vLLM", release }),
    vocabularySize: options.vocabularySize,
    answersServerInfo: options.answersServerInfo ?? true,
    servedModels,
    modelName: servedModels[0] ?? "test-model",
    apis: options.apis ?? ["generate", "completions"],
    isDevelopment: options.isDevelopment ?? false,
    logprobsMode: options.logprobsMode ?? "raw_logprobs",
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
