import { Agent } from "node:http";
import type { Clock } from "../../../../async/clock.ts";
import { systemClock } from "../../../../async/clock.ts";
import type { HttpExchange } from "../../shared/http-exchange.ts";
import { readExchange, sendJson, sendText } from "../../shared/http-exchange.ts";
import { listen } from "../../shared/listen.ts";
import { RouterRefused, filterGenerateBody } from "./forwarded-fields.ts";
import type { ForwardingContext, RouterWorker } from "./forwarding.ts";
import { fanOut, forward } from "./forwarding.ts";
import type { RouterQueue } from "./queue.ts";
import { createRouterQueue } from "./queue.ts";

/** Settings of `startSglangTestRouter()`. */
export interface SglangTestRouterOptions {
  /** The addresses of the engines. */
  readonly workers: readonly string[];
  /** The port. Default 0: any free port. */
  readonly port?: number;
  /** Maximum number of requests at a time; further ones queue. Default: no limit. */
  readonly maxConcurrent?: number;
  /** Maximum number of queued requests. Default 100. */
  readonly queueSize?: number;
  /** The longest time in the queue, in milliseconds. Default 60 000. */
  readonly queueTimeoutMs?: number;
  /**
   * Maximum number of attempts for one request, after statuses that the router considers temporary.
   * Default 5.
   */
  readonly maxAttempts?: number;
  /**
   * The wait before the second attempt, in milliseconds. It grows by half for each further attempt.
   * Default 50.
   */
  readonly retryDelayMs?: number;
  /** The function that waits. Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
}

/** Counters. JSON-able. */
export interface RouterStats {
  /** The number of requests for `/generate`. */
  readonly generateCount: number;
  /** The number of requests that were forwarded to a worker. */
  readonly forwardCount: number;
  /**
   * The number of requests for paths that a router does not have, including the engine's control
   * paths.
   */
  readonly unknownPathCount: number;
}

/** A running test router. */
export interface SglangTestRouter extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly stats: RouterStats;
  /** Marks a worker as healthy or unhealthy, as the router's own health checks would. */
  setHealthy(workerUrl: string, isHealthy: boolean): void;
  close(): Promise<void>;
}

interface RouterState extends ForwardingContext {
  readonly workers: RouterWorker[];
  readonly queue: RouterQueue;
  generateCount: number;
  unknownPathCount: number;
}

/**
 * Starts a router that behaves like SGLang's gateway. It parses and rewrites requests, which drops
 * unknown fields. It sends a routing key to one worker, retries failed requests silently, queues
 * requests, and has none of the engine's control paths.
 *
 * **Source:** sgl-project/sglang sgl-model-gateway/src (server.rs, routers/http/router.rs,
 * middleware.rs, routers/header_utils.rs).
 */
export async function startSglangTestRouter(
  options: SglangTestRouterOptions,
): Promise<SglangTestRouter> {
  const sleep = options.sleep ?? systemClock.sleep;
  const state: RouterState = {
    workers: options.workers.map(toWorker),
    agent: new Agent({ keepAlive: true }),
    queue: createRouterQueue({
      maxConcurrent: options.maxConcurrent ?? Number.POSITIVE_INFINITY,
      queueSize: options.queueSize ?? 100,
      timeoutMs: options.queueTimeoutMs ?? 60_000,
      sleep,
    }),
    maxAttempts: options.maxAttempts ?? 5,
    retryDelayMs: options.retryDelayMs ?? 50,
    sleep,
    generateCount: 0,
    forwardCount: 0,
    unknownPathCount: 0,
    nextWorkerIndex: 0,
  };
  const http = await listen(options.port ?? 0, (request, response) => {
    void readExchange(request, response)
      .then((exchange) => route(exchange, state))
      .catch((error: unknown) => {
        if (!request.destroyed && !response.destroyed) throw error;
      });
  });
  const close = async (): Promise<void> => {
    await http.close();
    state.agent.destroy();
  };
  return {
    url: http.url,
    port: http.port,
    get stats() {
      const { generateCount, forwardCount, unknownPathCount } = state;
      return { generateCount, forwardCount, unknownPathCount };
    },
    setHealthy(workerUrl, isHealthy) {
      for (const worker of state.workers) {
        if (worker.url === workerUrl) worker.isHealthy = isHealthy;
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function toWorker(url: string, index: number): RouterWorker {
  return { id: `worker-${index}`, url, isHealthy: true, load: 0 };
}

async function route(exchange: HttpExchange, state: RouterState): Promise<void> {
  const { path, method } = exchange;
  switch (path) {
    case "/generate":
      state.generateCount += 1;
      return serveGenerate(exchange, state);
    case "/workers":
      if (method === "POST") return addWorker(exchange, state);
      return sendWorkers(exchange, state);
    case "/liveness":
    case "/health":
      return sendText(exchange, "OK");
    case "/readiness":
      return sendReadiness(exchange, state);
    case "/model_info":
    case "/get_model_info":
    case "/server_info":
    case "/v1/models":
      return forward(exchange, state, { body: exchange.body });
    case "/flush_cache":
    case "/v1/loads":
      return fanOut(exchange, state);
    default:
      state.unknownPathCount += 1;
      return sendText(exchange, "", { status: 404 });
  }
}

async function serveGenerate(exchange: HttpExchange, state: RouterState): Promise<void> {
  let body: string;
  try {
    body = filterGenerateBody(exchange.body);
  } catch (error) {
    if (!(error instanceof RouterRefused)) throw error;
    sendText(exchange, error.message, { status: error.status });
    return;
  }
  const entry = await state.queue.enter();
  if (entry !== "entered") {
    sendText(exchange, "", { status: entry === "full" ? 429 : 408 });
    return;
  }
  try {
    await forward(exchange, state, { body });
  } finally {
    state.queue.leave();
  }
}

function sendWorkers(exchange: HttpExchange, { workers }: RouterState): void {
  sendJson(exchange, {
    workers: workers.map(({ id, url, isHealthy, load }) => ({
      id,
      url,
      model_id: "test-model",
      priority: 50,
      cost: 1,
      worker_type: "regular",
      is_healthy: isHealthy,
      load,
      connection_mode: "HTTP",
      metadata: {},
    })),
    total: workers.length,
    stats: { prefill_count: 0, decode_count: 0, regular_count: workers.length },
  });
}

function addWorker(exchange: HttpExchange, { workers }: RouterState): void {
  const { url } = JSON.parse(exchange.body) as { url: string };
  const worker = toWorker(url, workers.length);
  workers.push(worker);
  const message = "Worker addition queued";
  const { id } = worker;
  const reply = { status: "accepted", worker_id: id, url, location: `/workers/${id}`, message };
  sendJson(exchange, reply, { status: 202 });
}

function sendReadiness(exchange: HttpExchange, { workers }: RouterState): void {
  const healthyCount = workers.filter(({ isHealthy }) => isHealthy).length;
  const status = healthyCount > 0 ? 200 : 503;
  const word = healthyCount > 0 ? "ready" : "not ready";
  const reply = { status: word, healthy_workers: healthyCount, total_workers: workers.length };
  sendJson(exchange, reply, { status });
}
