import { request } from "undici";
import { RolloutError, describeError } from "../errors.ts";

/** Servers whose weights are changed. */
export interface WeightServers {
  /** Addresses of workers; a router does not hand such calls on. */
  readonly urls: readonly string[];
  readonly apiKey?: string;
  /** Time for one server to load them, in milliseconds. Default half an hour. */
  readonly timeoutMs?: number;
}

/** What is loaded: a folder that the server can read, or a name that it knows, and what to call it. */
export interface Weights {
  readonly path: string;
  readonly version: string;
}

/** One server, as its weights are changed. */
export interface WeightServer {
  readonly url: string;
  /** What it has. */
  current(): Promise<Weights>;
  /** Rejects where it has not loaded them; what it has then is asked again. */
  load(weights: Weights): Promise<void>;
}

/**
 * Has all servers load weights, at once. Where one does not, all are given back what they had.
 *
 * @throws RolloutError naming the server and what it said; `engine/mixed-weights` where one could not be
 *   given back what it had, so that nothing may be sampled before all have loaded the same.
 */
export async function loadOnAll(servers: readonly WeightServer[], weights: Weights): Promise<void> {
  const before = new Map<WeightServer, Weights>();
  for (const server of servers) before.set(server, await server.current());
  const results = await Promise.allSettled(
    servers.map(async (server) => await server.load(weights)),
  );
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) return;
  for (const server of servers) {
    try {
      const had = before.get(server)!;
      const now = await server.current().catch(() => undefined);
      if (now?.path !== had.path || now.version !== had.version) await server.load(had);
    } catch (cause) {
      const message =
        `${describeError(failed.reason)}; and ${server.url} could not be given back what it had ` +
        `(${describeError(cause)})`;
      throw new RolloutError("engine/mixed-weights", message, { cause });
    }
  }
  throw failed.reason;
}

/** A server's answer whose body is a JSON object; nothing where it is none. */
export interface WeightReply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

/** @throws RolloutError `engine/unreachable` where no answer comes in time. */
export async function callServer(
  url: string,
  asked: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: object },
  { apiKey, timeoutMs = 1_800_000 }: WeightServers,
): Promise<WeightReply> {
  const { method, path, body } = asked;
  let status: number;
  let text: string;
  try {
    const reply = await request(url.replace(/\/$/, "") + path, {
      method,
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    status = reply.statusCode;
    text = await reply.body.text();
  } catch (cause) {
    const message = `Cannot reach the engine at ${url}${path}: ${describeError(cause)}`;
    throw new RolloutError("engine/unreachable", message, { cause, retryable: true });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { status, body: { ...value } };
  } catch {
    // The status says more than what is not JSON.
  }
  return { status, body: undefined };
}
