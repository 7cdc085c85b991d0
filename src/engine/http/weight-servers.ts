import { request } from "undici";
import { RolloutError, describeError, type FailureCode } from "../../errors.ts";
import { plainReply, readReplyText } from "../../http/read-reply.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { findWeightsProblem } from "./weights-folder.ts";

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
  /** Lets it sample nothing for anybody; absent where it sees to that itself. */
  pause?(): Promise<void>;
  /** Rejects where it has not loaded them; what it has then may be a part of them. */
  load(weights: Weights): Promise<void>;
  /** Loads what it had, after a `load()` that may have left a part of something else. Default `load()`. */
  giveBack?(weights: Weights): Promise<void>;
  resume?(): Promise<void>;
}

/**
 * What a folder lacks to be loaded by these servers, where that can be seen from here.
 *
 * @throws RolloutError where a server does not say what it has.
 */
export async function findProblemForServers(
  servers: readonly WeightServer[],
  { path }: Weights,
): Promise<string | undefined> {
  // Most have theirs from one folder, and listing that of a large model takes its time.
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
 * Has all servers load weights, at once. Where one does not, all are given back what they had, those that
 * refused as well: a refusal does not say that nothing was changed. None samples meanwhile.
 *
 * @throws RolloutError naming the server and what it said; `engine/mixed-weights` where one could not be
 *   given back what it had, so that nothing may be sampled before all have loaded the same.
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
    await giveBack(before, { weights, failure });
    throw failure;
  }
}

/** @throws RolloutError `engine/mixed-weights`; servers that were paused stay so then. */
async function giveBack(
  before: ReadonlyMap<WeightServer, Weights>,
  { weights, failure }: { readonly weights: Weights; readonly failure: unknown },
): Promise<void> {
  const mixed = (url: string, why: string, cause?: unknown): RolloutError =>
    new RolloutError(
      "engine/mixed-weights",
      `${describeError(failure)}; and ${url} could not be given back what it had (${why})`,
      { cause },
    );
  for (const [server, had] of before) {
    if (had.path === weights.path && had.version !== weights.version) {
      throw mixed(server.url, `it was loaded from ${had.path} as well`);
    }
    try {
      await server.pause?.();
      await (server.giveBack?.(had) ?? server.load(had));
    } catch (cause) {
      throw mixed(server.url, describeError(cause), cause);
    }
  }
  for (const server of before.keys()) {
    try {
      await server.resume?.();
    } catch (cause) {
      throw mixed(server.url, describeError(cause), cause);
    }
  }
}

/**
 * A failure in a server's own words, without what is secret: careless ones repeat how they were asked, and
 * whoever announced the weights is told. Replies stay as they are, as a key may be a part of a path.
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

/** A server's answer whose body is a JSON object; nothing where it is none. */
export interface WeightReply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | undefined;
}

/** @throws RolloutError `engine/unreachable` where no answer comes in time. */
export async function callServer(
  url: string,
  asked: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: object },
  servers: WeightServers,
): Promise<WeightReply> {
  const { apiKey, timeoutMs = 1_800_000 } = servers;
  const { method, path, body } = asked;
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
    // The status says more than what is not JSON.
  }
  return { status, body: undefined };
}
