import { request } from "undici";
import { RolloutError, describeError, type FailureCode } from "../../errors.ts";
import { plainReply, readReplyText } from "../../http/read-reply.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { findWeightsProblem } from "./weights-folder.ts";

/** Servers that load new weights. */
export interface WeightServers {
  /**
   * Addresses of the inference servers. The address of a router does not work, because a router does not forward calls
   * about weights.
   */
  readonly urls: readonly string[];
  readonly apiKey?: string;
  /** Time for one server to load the weights, in milliseconds. Default half an hour. */
  readonly timeoutMs?: number;
}

/** Weights: a folder that the server can read, or a name that it knows, with their version. */
export interface Weights {
  readonly path: string;
  readonly version: string;
}

/** One server during a weight update. */
export interface WeightServer {
  readonly url: string;
  /** Returns the weights that the server has. */
  current(): Promise<Weights>;
  /** Stops sampling for all clients. Absent if `load()` does that. */
  pause?(): Promise<void>;
  /** Loads weights. After a rejection, the server may have a part of them. */
  load(weights: Weights): Promise<void>;
  /**
   * Loads the previous weights after a `load()` that may have left a part of the new ones. Default
   * `load()`.
   */
  restore?(weights: Weights): Promise<void>;
  resume?(): Promise<void>;
}

/**
 * Finds the reason why these servers cannot load a folder, as far as this machine can see.
 *
 * @throws RolloutError if a server does not report its weights.
 */
export async function findProblemForServers(
  servers: readonly WeightServer[],
  { path }: Weights,
): Promise<string | undefined> {
  // Most servers have the same folder, and listing a large model's folder takes time.
  const compared = new Set<string>();
  for (const server of servers) {
    const { path: before } = await server.current();
    if (compared.has(before)) continue;
    compared.add(before);
    const problem = await findWeightsProblem(path, before);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * Loads weights on all servers at the same time. If one fails, all servers load their previous weights, including those
 * that refused, because a refused load may have changed something. No server samples during this.
 *
 * @throws RolloutError naming the server and its message; `engine/mixed-weights` if a server could not restore its
 *   previous weights. Nothing may be sampled then until all servers have loaded the same weights.
 */
export async function loadOnAll(servers: readonly WeightServer[], weights: Weights): Promise<void> {
  const before = new Map<WeightServer, Weights>();
  for (const server of servers) before.set(server, await server.current());
  const onEach = async (
    act: (server: WeightServer) => Promise<void> | undefined,
  ): Promise<void> => {
    const results = await Promise.allSettled(servers.map(async (server) => await act(server)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  };
  try {
    await onEach(async (server) => {
      await server.pause?.();
      await server.load(weights);
    });
    await onEach((server) => server.resume?.());
  } catch (failure) {
    await restore(before, { weights, failure });
    throw failure;
  }
}

/**
 * Loads the previous weights again on all servers after a failed load.
 *
 * @throws RolloutError `engine/mixed-weights`. Servers that were paused stay paused then.
 */
async function restore(
  before: ReadonlyMap<WeightServer, Weights>,
  { weights, failure }: { readonly weights: Weights; readonly failure: unknown },
): Promise<void> {
  const mixedWeights = (url: string, why: string, cause?: unknown): RolloutError =>
    new RolloutError(
      "engine/mixed-weights",
      `${describeError(failure)}; and ${url} could not load its previous weights again (${why})`,
      { cause },
    );
  for (const [server, previous] of before) {
    if (previous.path === weights.path && previous.version !== weights.version) {
      throw mixedWeights(server.url, `it was loaded from ${previous.path} as well`);
    }
    try {
      await server.pause?.();
      await (server.restore?.(previous) ?? server.load(previous));
    } catch (cause) {
      throw mixedWeights(server.url, describeError(cause), cause);
    }
  }
  for (const server of before.keys()) {
    try {
      await server.resume?.();
    } catch (cause) {
      throw mixedWeights(server.url, describeError(cause), cause);
    }
  }
}

/**
 * Returns an error with a server's own message, without secrets. Some servers repeat the request in
 * their message, and clients that announce weights read it. Replies are not redacted, because the
 * key can be a part of a path.
 */
export function weightsFailure(
  code: FailureCode,
  message: string,
  {
    servers: { urls, apiKey },
    ...options
  }: {
    readonly servers: WeightServers;
    readonly cause?: unknown;
    readonly retryable?: boolean;
  },
): RolloutError {
  const redactor = new Redactor(apiKey === undefined ? [] : [apiKey]);
  for (const url of urls) redactor.learnUrl(url);
  const failure = new RolloutError(code, message, options);
  redactor.error(failure);
  return failure;
}

/** A server's answer. `body` is `undefined` if it is not a JSON object. */
export interface WeightReply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Sends a request to a server, and returns its status and text.
 *
 * @throws RolloutError `engine/unreachable` where no answer comes in time.
 */
export async function callServer(
  url: string,
  sent: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: object },
  servers: WeightServers,
): Promise<WeightReply> {
  const { apiKey, timeoutMs = 1_800_000 } = servers;
  const { method, path, body } = sent;
  let status: number;
  let text: string;
  try {
    const reply = await request(url.replace(/\/$/, "") + path, {
      method,
      headers: {
        ...plainReply,
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    status = reply.statusCode;
    text = await readReplyText(reply);
  } catch (cause) {
    const message = `Cannot reach the engine at ${url}${path}: ${describeError(cause)}`;
    throw weightsFailure("engine/unreachable", message, { servers, cause, retryable: true });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return { status, body: { ...value } };
  } catch {
    // The status says more than a body that is not JSON.
  }
  return { status, body: undefined };
}
