import type { Agent, IncomingMessage } from "node:http";
import { request as httpRequest } from "node:http";
import type { Clock } from "../../../../async/clock.ts";
import type { HttpExchange } from "../../shared/http-exchange.ts";
import { sendJson } from "../../shared/http-exchange.ts";

/** Statuses after which the router retries. */
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);

const FORWARDED_HEADERS = [
  "authorization",
  "x-request-id",
  "x-correlation-id",
  "traceparent",
  "tracestate",
  "x-smg-routing-key",
] as const;

/** An engine of the router. */
export interface RouterWorker {
  readonly id: string;
  readonly url: string;
  isHealthy: boolean;
  load: number;
}

/** The parts that forwarding needs. */
export interface ForwardingContext {
  readonly workers: readonly RouterWorker[];
  readonly agent: Agent;
  readonly maxAttempts: number;
  /**
   * The wait before the second attempt, in milliseconds. It grows by half for each further attempt.
   */
  readonly retryDelayMs: number;
  readonly sleep: Clock["sleep"];
  /** The number of forwarded `/generate` requests. */
  forwardCount: number;
  nextWorkerIndex: number;
}

/** Forwards a request. Repeats it for retryable statuses, even if tokens were sampled. */
export async function forward(
  exchange: HttpExchange,
  state: ForwardingContext,
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

/**
 * Sends a request to the worker. Returns an `Error` if no reply arrived. Aborts the call if the
 * client disconnects.
 */
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
    ...(type !== undefined && { "content-type": type }),
    ...(length !== undefined && { "content-length": length }),
  });
  reply.once("error", () => response.destroy());
  reply.pipe(response);
  await new Promise((resolve) => {
    response.once("close", resolve);
  });
}

/**
 * Chooses a worker: the one of the routing key if it is healthy, otherwise the next one in turn.
 */
function pickWorker({ request }: HttpExchange, state: ForwardingContext): RouterWorker | undefined {
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

/** Sends the same request to all workers. */
export async function fanOut(exchange: HttpExchange, state: ForwardingContext): Promise<void> {
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
