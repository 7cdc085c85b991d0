import type { HttpExchange } from "../shared/http-exchange.ts";
import { readBody, sendJson, sendText } from "../shared/http-exchange.ts";
import type { PrefixCache } from "../shared/prefix-cache.ts";
import type { PauseMode, RequestScheduler } from "../shared/request-scheduler.ts";
import type { ServedColumns } from "./column-options.ts";
import { sendErrorResponse } from "./error-replies.ts";
import type { DecodedRequest } from "./request-decoding.ts";

/** The parts that the control routes need. */
export interface ControlContext {
  readonly scheduler: RequestScheduler<DecodedRequest>;
  /** The folder or name of the weights. */
  readonly modelPath: () => string;
  readonly setModelPath: (path: string) => void;
  readonly contextLength: number;
  readonly weightVersion: () => string;
  readonly setWeightVersion: (version: string) => void;
  readonly cache: PrefixCache;
  readonly columns: ServedColumns;
  /** The content of `/test/stats`. */
  readonly stats: () => unknown;
}

type Route = (exchange: HttpExchange, context: ControlContext) => void | Promise<void>;

/** The capacity of the server's key-value cache, in tokens. */
const CACHE_TOKENS = 2 ** 20;

const PAUSE_MODES: readonly PauseMode[] = ["abort", "retract", "in_place"];

/**
 * The engine's endpoints by path, except `/generate` and those for the load. `/test/stats` exists
 * only here.
 * **Source:** sgl-project/sglang python/sglang/srt/entrypoints/http_server.py.
 */
export const CONTROL_ROUTES: Readonly<Record<string, Route>> = {
  "/health": (exchange) => sendText(exchange, ""),
  "/health_generate": (exchange) => sendText(exchange, ""),
  "/model_info": sendModelInfo,
  "/get_model_info": sendModelInfo,
  "/server_info": sendServerInfo,
  "/get_server_info": sendServerInfo,
  "/v1/models": sendModels,
  "/abort_request": abortRequest,
  "/pause_generation": pauseGeneration,
  "/continue_generation": continueGeneration,
  "/flush_cache": flushCache,
  "/update_weight_version": updateWeightVersion,
  "/update_weights_from_disk": updateWeightsFromDisk,
  "/test/stats": (exchange, { stats }) => sendJson(exchange, stats()),
};

function sendModelInfo(exchange: HttpExchange, context: ControlContext): void {
  sendJson(exchange, {
    model_path: context.modelPath(),
    served_model_name: context.modelPath(),
    tokenizer_path: context.modelPath(),
    is_generation: true,
    preferred_sampling_params: null,
    weight_version: context.weightVersion(),
    load_format: "auto",
    has_image_understanding: false,
    has_audio_understanding: false,
    model_type: "test",
    architectures: ["TestForCausalLM"],
  });
}

function sendServerInfo(exchange: HttpExchange, context: ControlContext): void {
  sendJson(exchange, {
    model_path: context.modelPath(),
    context_length: context.contextLength,
    max_req_input_len: context.contextLength - 1,
    max_total_num_tokens: CACHE_TOKENS,
    internal_states: [{}],
    enable_return_routed_experts: context.columns.routedExperts !== undefined,
    enable_return_indexer_topk: context.columns.indexerTopK !== undefined,
    ...(context.columns.keptTokens && {
      sampling_mask_max_tokens: context.columns.keptTokens.maxCount,
    }),
    version: "test",
  });
}

function sendModels(exchange: HttpExchange, context: ControlContext): void {
  const { contextLength } = context;
  const id = context.modelPath();
  sendJson(exchange, {
    object: "list",
    data: [
      {
        id,
        object: "model",
        created: 0,
        owned_by: "sglang",
        root: id,
        parent: null,
        max_model_len: contextLength,
      },
    ],
  });
}

/** Reports the server's load. */
export function sendLoads(exchange: HttpExchange, { scheduler }: ControlContext): void {
  sendJson(exchange, {
    version: "test",
    num_accelerators: 1,
    loads: [
      {
        dp_rank: 0,
        num_running_reqs: scheduler.runningCount,
        num_waiting_reqs: scheduler.waitingCount,
        num_used_tokens: scheduler.tokenCount,
        num_total_tokens: scheduler.tokenCount,
        max_total_num_tokens: CACHE_TOKENS,
        token_usage: scheduler.tokenCount / CACHE_TOKENS,
      },
    ],
  });
}

/** Aborts requests. Answers with status 200 even if the request is not running. */
function abortRequest(exchange: HttpExchange, { scheduler }: ControlContext): void {
  const { rid = "", abort_all: all } = readBody(exchange);
  if (all === true) scheduler.abortAll();
  else if (typeof rid === "string" && rid !== "") scheduler.abort(rid);
  sendText(exchange, "");
}

async function pauseGeneration(exchange: HttpExchange, context: ControlContext): Promise<void> {
  const given = readBody(exchange)["mode"] ?? "abort";
  const mode = PAUSE_MODES.find((name) => name === given);
  if (mode === undefined) {
    sendErrorResponse(exchange, { status: 400, message: "mode: unknown", type: "Bad Request" });
    return;
  }
  await context.scheduler.pause(mode);
  sendJson(exchange, { message: "Generation paused successfully.", status: "ok" });
}

function continueGeneration(exchange: HttpExchange, { scheduler }: ControlContext): void {
  scheduler.continue();
  sendJson(exchange, { message: "Generation continued successfully.", status: "ok" });
}

function flushCache(exchange: HttpExchange, { scheduler, cache }: ControlContext): void {
  if (scheduler.runningCount + scheduler.waitingCount > 0) {
    sendText(exchange, "Cache not flushed: there are running or waiting requests.\n", {
      status: 400,
    });
    return;
  }
  cache.clear();
  sendText(exchange, "Cache flushed.\n");
}

function updateWeightVersion(exchange: HttpExchange, context: ControlContext): void {
  const { new_version: version, abort_all_requests: abortAll = true } = readBody(exchange);
  if (typeof version !== "string") {
    const message = "new_version: not a string";
    sendErrorResponse(exchange, { status: 400, message, type: "Bad Request" });
    return;
  }
  if (abortAll === true) context.scheduler.abortAll();
  context.setWeightVersion(version);
  const message = `Weight version updated to ${version}`;
  sendJson(exchange, { success: true, message, new_version: version });
}

/**
 * Answers like a recorded 0.5.23. This server has no weights, so the only missing folder is
 * `/nowhere`. Running requests count as requests of disconnected clients, because the real server
 * waits for all others.
 */
function updateWeightsFromDisk(exchange: HttpExchange, context: ControlContext): void {
  const body = readBody(exchange);
  const refuse = (message: string): void =>
    sendJson(exchange, { success: false, message, num_paused_requests: 0 }, { status: 400 });
  const { model_path: path, weight_version: version, flush_cache: flush = true } = body;
  if (typeof path !== "string") return refuse("model_path: missing");
  const { scheduler, cache } = context;
  if (body["abort_all_requests"] === true) scheduler.abortAll();
  if (path === "/nowhere") {
    return refuse(
      "Failed to get weights iterator: Repo id must be in the form 'repo_name' or " +
        "'namespace/repo_name': '/nowhere'. Use `repo_type` argument if needed..",
    );
  }
  const queued = scheduler.pauseMode === undefined ? scheduler.waitingCount : 0;
  if (flush === true && scheduler.runningCount + queued > 0) {
    // The real server has loaded the weights, but keeps reporting the previous version.
    return refuse(
      "Weights were updated, but the cache was not flushed because requests are still running or queued. " +
        "Retract or finish them, then call /flush_cache.",
    );
  }
  context.setModelPath(path);
  if (typeof version === "string") context.setWeightVersion(version);
  if (flush === true) cache.clear();
  const named = typeof version === "string" ? ` Weight version updated to ${version}.` : "";
  const message = `Succeeded to update model weights.${named}`;
  sendJson(exchange, { success: true, message, num_paused_requests: 0 });
}
