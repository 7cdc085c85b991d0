import type { HttpExchange } from "../shared/http-exchange.ts";
import { readBody, sendJson, sendText } from "../shared/http-exchange.ts";
import type { PauseMode } from "../shared/request-scheduler.ts";
import { sendError, sendNoSuchRoute } from "./error-replies.ts";
import type { SamplingContext } from "./sampling-routes.ts";

/** The parts that the control routes need. */
export interface ControlContext extends SamplingContext {
  readonly weightVersion: () => string;
  readonly setWeightVersion: (version: string) => void;
  /** True if `/server_info` has an answer. */
  readonly answersServerInfo: boolean;
}

interface Route {
  readonly method: "GET" | "POST";
  readonly serve: (exchange: HttpExchange, context: ControlContext) => void | Promise<void>;
}

/**
 * The paths of every server, besides those for sampling. `/test/stats` exists only in this server.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/serve/instrumentator and
 * vllm/entrypoints/openai/models.
 */
export const CONTROL_ROUTES: Readonly<Record<string, Route>> = {
  "/health": { method: "GET", serve: (exchange) => sendText(exchange, "") },
  "/ping": { method: "GET", serve: (exchange) => sendText(exchange, "") },
  "/load": {
    method: "GET",
    serve: (exchange, { scheduler }) =>
      sendJson(exchange, { server_load: scheduler.runningCount + scheduler.waitingCount }),
  },
  "/metrics": { method: "GET", serve: sendMetrics },
  "/version": { method: "GET", serve: (exchange) => sendJson(exchange, { version: "0.0.0+test" }) },
  "/v1/models": { method: "GET", serve: sendModels },
  "/test/stats": { method: "GET", serve: (exchange, { stats }) => sendJson(exchange, stats()) },
};

/**
 * The paths of the ids-only API, besides the one for sampling.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/api_router.py.
 */
export const TOKENS_ROUTES: Readonly<Record<string, Route>> = {
  "/inference/v1/abort_requests": { method: "POST", serve: abortNamed },
};

/**
 * The paths of servers in development mode.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/serve/dev.
 */
export const DEVELOPMENT_ROUTES: Readonly<Record<string, Route>> = {
  "/pause": { method: "POST", serve: pause },
  "/resume": { method: "POST", serve: resume },
  "/is_paused": {
    method: "GET",
    serve: (exchange, { scheduler }) =>
      sendJson(exchange, { is_paused: scheduler.pauseMode !== undefined }),
  },
  "/abort_requests": { method: "POST", serve: abortRequests },
  "/init_weight_transfer_engine": acknowledge("Weight transfer initialized"),
  "/start_weight_update": acknowledge("Weight update started"),
  "/update_weights": acknowledge("Weights updated"),
  "/finish_weight_update": { method: "POST", serve: finishWeightUpdate },
  "/update_weight_version": { method: "POST", serve: updateWeightVersion },
  "/collective_rpc": { method: "POST", serve: collectiveRpc },
  "/weight_info": {
    method: "GET",
    serve: (exchange, { weightVersion }) => sendJson(exchange, { weight_version: weightVersion() }),
  },
  "/get_world_size": { method: "GET", serve: (exchange) => sendJson(exchange, { world_size: 1 }) },
  "/reset_prefix_cache": { method: "POST", serve: resetPrefixCache },
  "/server_info": { method: "GET", serve: sendServerInfo },
};

const PAUSE_MODES: Readonly<Record<string, PauseMode>> = {
  abort: "abort",
  wait: "wait",
  keep: "in_place",
};

/** Serves a path of a table, or answers that it does not exist. */
export async function serveControl(
  routes: Readonly<Record<string, Route>>,
  exchange: HttpExchange,
  context: ControlContext,
): Promise<void> {
  const route = routes[exchange.path];
  if (route === undefined) sendNoSuchRoute(exchange, 404);
  else if (route.method !== exchange.method) sendNoSuchRoute(exchange, 405);
  else await route.serve(exchange, context);
}

/** The size of the server's key-value cache: the number of blocks, and tokens per block. */
const CACHE = { blockCount: 8_192, blockSize: 128 } as const;

/**
 * Sends the metrics of the server.
 * **Source:** vllm-project/vllm vllm/v1/metrics/loggers.py, and as recorded from 0.32.0.
 */
function sendMetrics(exchange: HttpExchange, { scheduler, modelName }: ControlContext): void {
  const labels = `engine="0",model_name="${modelName}"`;
  const use = scheduler.tokenCount / (CACHE.blockCount * CACHE.blockSize);
  const { blockCount, blockSize } = CACHE;
  const cache = `block_size="${blockSize}",engine="0",num_gpu_blocks="${blockCount}"`;
  const lines = [
    "# TYPE vllm:num_requests_running gauge",
    `vllm:num_requests_running{${labels}} ${scheduler.runningCount}.0`,
    `vllm:num_requests_waiting{${labels}} ${scheduler.waitingCount}.0`,
    `vllm:kv_cache_usage_perc{${labels}} ${use}`,
    `vllm:cache_config_info{${cache}} 1.0`,
  ];
  sendText(exchange, `${lines.join("\n")}\n`, { headers: { "content-type": METRICS_TYPE } });
}

const METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8";

function sendModels(exchange: HttpExchange, context: ControlContext): void {
  const data = context.servedModels.map((id, index) => ({
    id,
    object: "model",
    created: 0,
    owned_by: "vllm",
    root: id,
    parent: index === 0 ? null : context.modelName,
    max_model_len: index === 0 ? context.contextLength : null,
    permission: [],
  }));
  sendJson(exchange, { object: "list", data });
}

/**
 * Answers with the configuration: as text, or as JSON if the request asks for it. A server that
 * cannot detect its machine fails with an error message of Python.
 */
function sendServerInfo(
  exchange: HttpExchange,
  { logprobsMode, modelName, answersServerInfo }: ControlContext,
): void {
  if (!answersServerInfo) {
    const message = "'NoneType' object has no attribute 'splitlines'";
    sendError(exchange, { status: 500, message, type: "InternalServerError" });
    return;
  }
  const isJson = exchange.query.get("config_format") === "json";
  const config = { model_config: { model: modelName, logprobs_mode: logprobsMode } };
  sendJson(exchange, {
    vllm_config: isJson ? config : `model='${modelName}'`,
    vllm_env: {},
    system_env: {},
  });
}

async function pause(exchange: HttpExchange, { scheduler }: ControlContext): Promise<void> {
  const mode = PAUSE_MODES[exchange.query.get("mode") ?? "abort"];
  if (mode === undefined) {
    const message = "1 validation error:\n  Input should be 'abort', 'wait' or 'keep'";
    sendError(exchange, { status: 400, message, type: "Bad Request", param: "query.mode" });
    return;
  }
  await scheduler.pause(mode);
  sendJson(exchange, { status: "paused" });
}

function resume(exchange: HttpExchange, { scheduler }: ControlContext): void {
  scheduler.continue();
  sendJson(exchange, { status: "resumed" });
}

/** Aborts requests by the names that the server gave them. Without names, aborts all. */
function abortRequests(exchange: HttpExchange, context: ControlContext): void {
  const { request_ids: ids = [] } = readBody(exchange);
  const names = Array.isArray(ids) ? (ids as unknown[]) : [ids];
  if (names.length === 0) {
    sendJson(exchange, { status: "aborted", aborted: context.scheduler.dropAll() });
    return;
  }
  dropNamed(names, context);
  sendJson(exchange, { status: "aborted", aborted: names.length });
}

/** Aborts requests by name. The reply does not list them. */
function abortNamed(exchange: HttpExchange, context: ControlContext): void {
  const { request_ids: ids } = readBody(exchange);
  if (ids === undefined || ids === null) {
    const detail = "Missing 'request_ids' in request body";
    sendJson(exchange, { detail }, { status: 400 });
    return;
  }
  dropNamed(Array.isArray(ids) ? (ids as unknown[]) : [ids], context);
  sendText(exchange, "");
}

function dropNamed(names: readonly unknown[], { liveNames, scheduler }: ControlContext): void {
  for (const name of names) {
    for (const rid of Array.from(liveNames.get(String(name)) ?? [])) scheduler.drop(rid);
  }
}

function acknowledge(message: string): Route {
  return { method: "POST", serve: (exchange) => sendJson(exchange, { message }) };
}

function finishWeightUpdate(exchange: HttpExchange, context: ControlContext): void {
  const { weight_version: version } = readBody(exchange);
  if (typeof version === "string") context.setWeightVersion(version);
  sendJson(exchange, { message: "Weight update finished" });
}

function updateWeightVersion(exchange: HttpExchange, context: ControlContext): void {
  const { new_version: version } = readBody(exchange);
  if (typeof version !== "string") {
    const message = "1 validation error:\n  Field required";
    const error = { status: 400, message, type: "Bad Request", param: "body.new_version" };
    sendError(exchange, error);
    return;
  }
  context.setWeightVersion(version);
  sendJson(exchange, { success: true, new_version: version });
}

/**
 * Makes the workers load weights. This server has no weights, so the only missing folder is
 * `/nowhere`. Answers like a recorded 0.32.0. The real server then lacks some of its weights, and
 * crashes if it samples before it loads others.
 */
function collectiveRpc(exchange: HttpExchange): void {
  const { method, kwargs } = readBody(exchange) as {
    readonly method?: unknown;
    readonly kwargs?: { readonly weights_path?: unknown };
  };
  if (typeof method !== "string") {
    const message = "Missing 'method' in request body";
    sendError(exchange, { status: 400, message, type: "Bad Request" });
  } else if (method === "reload_weights" && kwargs?.weights_path === "/nowhere") {
    const message =
      "Call to collective_rpc method failed: Worker failed with error 'Repo id must be in the form " +
      "'repo_name' or 'namespace/repo_name': '<path>'. Use `repo_type` argument if needed.', please check " +
      "the stack trace above for the root cause";
    sendError(exchange, { status: 500, message, type: "InternalServerError" });
  } else sendJson(exchange, { results: [null] });
}

function resetPrefixCache(exchange: HttpExchange, { scheduler, cache }: ControlContext): void {
  const success = scheduler.runningCount === 0;
  if (success) cache.clear();
  sendJson(exchange, { success });
}
