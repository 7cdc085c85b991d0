import { request } from "undici";
import { RolloutError, describeError } from "../../errors.ts";

/** Servers whose weights are changed. */
export interface WeightServers {
  /** Addresses of workers; a router does not hand such calls on. */
  readonly urls: readonly string[];
  readonly apiKey?: string;
  /** Time for one server to load them, in milliseconds. Default half an hour. */
  readonly timeoutMs?: number;
}

interface Weights {
  readonly path: string;
  readonly version: string;
}

/**
 * Has SGLang's servers load weights from a folder that they can read (`/update_weights_from_disk`), all
 * at once. Where one does not, those that did load what they had before again.
 *
 * @throws RolloutError `engine/server-error` or `engine/unreachable`, naming the server and what it said.
 */
export async function loadSglangWeights(servers: WeightServers, weights: Weights): Promise<void> {
  const before = new Map<string, Weights>();
  for (const url of servers.urls) before.set(url, await currentWeights(url, servers));
  const results = await Promise.allSettled(
    servers.urls.map(async (url) => await loadOne(url, weights, servers)),
  );
  const failed = results.find((result) => result.status === "rejected");
  if (failed === undefined) return;
  for (const [index, url] of servers.urls.entries()) {
    // A server that refuses keeps what it has by itself.
    if (results[index]!.status === "fulfilled") await loadOne(url, before.get(url)!, servers);
  }
  throw failed.reason;
}

async function currentWeights(url: string, servers: WeightServers): Promise<Weights> {
  const reply = await call(url, { method: "GET", path: "/model_info" }, servers);
  const { model_path: path, weight_version: version } = reply;
  if (typeof path === "string" && typeof version === "string") return { path, version };
  throw new RolloutError(
    "engine/bad-reply",
    `Cannot load weights at ${url}: /model_info names no model_path and weight_version, expected an SGLang worker`,
  );
}

async function loadOne(url: string, weights: Weights, servers: WeightServers): Promise<void> {
  const body = JSON.stringify({ model_path: weights.path, weight_version: weights.version });
  const asked = { method: "POST", path: "/update_weights_from_disk", body } as const;
  const { success, message } = await call(url, asked, servers);
  if (success === true) return;
  throw new RolloutError(
    "engine/server-error",
    `Cannot load ${weights.path} at ${url}: ${typeof message === "string" ? message : "it said no"}`,
  );
}

async function call(
  url: string,
  asked: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: string },
  { apiKey, timeoutMs = 1_800_000 }: WeightServers,
): Promise<Readonly<Record<string, unknown>>> {
  const { method, path, body } = asked;
  let text: string;
  let statusCode: number;
  try {
    const reply = await request(url.replace(/\/$/, "") + path, {
      method,
      headers: {
        "content-type": "application/json",
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
      ...(body !== undefined && { body }),
      ...{ headersTimeout: timeoutMs, bodyTimeout: timeoutMs },
    });
    statusCode = reply.statusCode;
    text = await reply.body.text();
  } catch (cause) {
    const message = `Cannot reach the engine at ${url}${path}: ${describeError(cause)}`;
    throw new RolloutError("engine/unreachable", message, { cause, retryable: true });
  }
  try {
    const value: unknown = JSON.parse(text);
    // A refusal is told in the same form, with the status 400.
    if (typeof value === "object" && value !== null && statusCode <= 400) return { ...value };
  } catch {
    // The status says more than what is not JSON.
  }
  throw new RolloutError(
    "engine/server-error",
    `Cannot load weights at ${url}: ${path} answered ${statusCode}, expected an SGLang worker's answer`,
  );
}
