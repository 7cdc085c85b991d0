import type { IncomingMessage } from "node:http";
import { Agent, createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import type { Clock } from "../engine/clock.ts";
import { systemClock } from "../engine/clock.ts";
import type { HttpExchange } from "./sglang/http-exchange.ts";
import { readExchange, sendJson, sendText } from "./sglang/http-exchange.ts";
import type { RouterQueue } from "./sglang/router-queue.ts";
import { createRouterQueue } from "./sglang/router-queue.ts";
import { RouterRefused, filterGenerateBody } from "./sglang/router-fields.ts";

/** Settings of `startSglangTestRouter()`. */
export interface SglangTestRouterOptions {
  /** Addresses of the engines behind it. */
  readonly workers: readonly string[];
  /** Default 0: any free port. */
  readonly port?: number;
  /** Requests at a time before they queue. Default: no limit. */
  readonly maxConcurrent?: number;
  /** Requests that may queue. Default 100. */
  readonly queueSize?: number;
  /** How long a request may queue, in milliseconds. Default 60 000. */
  readonly queueTimeoutMs?: number;
  /** Attempts for one request, on statuses that the router takes for passing. Default 5. */
  readonly maxAttempts?: number;
  /** Wait before the second attempt, in milliseconds; grows by half each time. Default 50. */
  readonly retryDelayMs?: number;
  /** Default: the machine's timers. */
  readonly sleep?: Clock["sleep"];
}

/** Counters. JSON-able. */
export interface RouterStats {
  /** Requests for `/generate`. */
  readonly generateCount: number;
  /** How often one of them was passed on to a worker. */
  readonly forwardCount: number;
  /** Requests for paths that a router does not have, the engine's control paths among them. */
  readonly unknownPathCount: number;
}

/** A running test router. */
export interface SglangTestRouter extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly stats: RouterStats;
  /** Takes a worker out, or in again, as the router's own health checks would. */
  setHealthy(workerUrl: string, isHealthy: boolean): void;
  close(): Promise<void>;
}

/** Statuses that the router tries again. */
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);

const FORWARDED_HEADERS = [
  "authorization",
  "x-request-id",
  "x-correlation-id",
  "traceparent",
  "tracestate",
  "x-smg-routing-key",
] as const;

interface RouterWorker {
  readonly id: string;
  readonly url: string;
  isHealthy: boolean;
  load: number;
}

interface RouterState {
  readonly workers: RouterWorker[];
  readonly agent: Agent;
  readonly queue: RouterQueue;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
  readonly sleep: Clock["sleep"];
  generateCount: number;
  forwardCount: number;
  unknownPathCount: number;
  nextWorkerIndex: number;
}

/**
 * Starts a router that behaves as SGLang's gateway does in front of engines: it re-serialises
 * requests and thereby drops fields that it does not know, keeps a routing key on one worker,
 * repeats what fails without telling anyone, queues, and has none of the engine's control paths.
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
  const http = createServer((request, response) => {
    void readExchange(request, response)
      .then((exchange) => route(exchange, state))
      .catch((error: unknown) => {
        if (!request.destroyed && !response.destroyed) throw error;
      });
  });
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
    state.agent.destroy();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    port,
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

/** Passes a request on, again and again where the status looks passing, whatever was sampled. */
async function forward(
  exchange: HttpExchange,
  state: RouterState,
  { body }: { body: string },
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const worker = pickWorker(exchange, state);
    const isLast = attempt === state.maxAttempts;
    if (worker === undefined) {
      const message = "No available workers (all circuits open or unhealthy)";
      if (!isLast) {
        await state.sleep(state.retryDelayMs * 1.5 ** (attempt - 1));
        continue;
      }
      return sendRouterError(exchange, { status: 503, code: "no_available_workers", message });
    }
    if (exchange.path === "/generate") state.forwardCount += 1;
    const reply = await callWorker(exchange, { worker, body, agent: state.agent });
    if (exchange.response.destroyed) return undefined;
    const status = reply instanceof Error ? 500 : (reply.statusCode ?? 500);
    if (RETRIED.has(status) && !isLast) {
      if (!(reply instanceof Error)) reply.resume();
      await state.sleep(state.retryDelayMs * 1.5 ** (attempt - 1));
      continue;
    }
    if (reply instanceof Error) {
      const code = "call_upstream_connection_failed";
      return sendRouterError(exchange, { status, code, message: reply.message });
    }
    return passBack(exchange, reply);
  }
}

/** Sends to the worker; an `Error` where no reply began. A client that goes away takes the call along. */
function callWorker(
  { method, path, request, response }: HttpExchange,
  { worker, body, agent }: { worker: RouterWorker; body: string; agent: Agent },
): Promise<IncomingMessage | Error> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  for (const name of FORWARDED_HEADERS) {
    const value = request.headers[name];
    if (typeof value === "string") headers[name] = value;
  }
  worker.load += 1;
  return new Promise((resolve) => {
    const upstream = httpRequest(worker.url + path, { method, agent, headers }, resolve);
    upstream.once("error", resolve);
    upstream.once("close", () => {
      worker.load -= 1;
    });
    response.once("close", () => {
      if (!response.writableFinished) upstream.destroy();
    });
    upstream.end(method === "GET" ? undefined : body);
  });
}

async function passBack({ response }: HttpExchange, reply: IncomingMessage): Promise<void> {
  const { "content-type": type, "content-length": length } = reply.headers;
  response.writeHead(reply.statusCode ?? 500, {
    ...(type === undefined ? {} : { "content-type": type }),
    ...(length === undefined ? {} : { "content-length": length }),
  });
  reply.once("error", () => response.destroy());
  reply.pipe(response);
  await new Promise((resolve) => {
    response.once("close", resolve);
  });
}

/** A routing key's own worker while that one is healthy, else the next; without a key in turns. */
function pickWorker({ request }: HttpExchange, state: RouterState): RouterWorker | undefined {
  const { workers } = state;
  const key = request.headers["x-smg-routing-key"];
  const start = typeof key === "string" ? hash(key) : state.nextWorkerIndex++;
  for (let step = 0; step < workers.length; step++) {
    const worker = workers[(start + step) % workers.length];
    if (worker?.isHealthy === true) return worker;
  }
  return undefined;
}

function hash(text: string): number {
  let state = 0;
  for (let index = 0; index < text.length; index++) {
    state = (Math.imul(state, 31) + text.charCodeAt(index)) >>> 0;
  }
  return state;
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

async function fanOut(exchange: HttpExchange, state: RouterState): Promise<void> {
  const replies = await Promise.all(
    state.workers.map((worker) =>
      callWorker(exchange, { worker, body: exchange.body, agent: state.agent }),
    ),
  );
  for (const reply of replies) if (!(reply instanceof Error)) reply.resume();
  const isWell = replies.every((reply) => !(reply instanceof Error) && reply.statusCode === 200);
  sendJson(exchange, { success: isWell }, { status: isWell ? 200 : 500 });
}

function sendRouterError(
  exchange: HttpExchange,
  { status, code, message }: { status: number; code: string; message: string },
): void {
  const type = status === 503 ? "Service Unavailable" : "Internal Server Error";
  sendJson(
    exchange,
    { error: { type, code, message } },
    { status, headers: { "x-smg-error-code": code } },
  );
}
