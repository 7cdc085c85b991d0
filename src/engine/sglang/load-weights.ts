import {
  callServer,
  findProblemForServers,
  loadOnAll,
  weightsFailure,
  type WeightReply,
  type Weights,
  type WeightServer,
  type WeightServers,
} from "../http/weight-servers.ts";

/**
 * Makes SGLang servers load weights at the same time from a folder that they can read (`/update_weights_from_disk`). If
 * one fails, all others load their previous weights again.
 *
 * @throws RolloutError naming the server and its message; `engine/mixed-weights` as `loadOnAll()` does.
 */
export async function loadSglangWeights(servers: WeightServers, weights: Weights): Promise<void> {
  await loadOnAll(serversOf(servers), weights);
}

/**
 * Finds the reason why the servers cannot load a folder, as far as this machine can see.
 *
 * @throws RolloutError if a server does not report its weights.
 */
export async function findSglangProblem(
  servers: WeightServers,
  weights: Weights,
): Promise<string | undefined> {
  return await findProblemForServers(serversOf(servers), weights);
}

/** True if all servers report these weights. */
export async function haveSglangWeights(
  servers: WeightServers,
  { path, version }: Weights,
): Promise<boolean> {
  for (const server of serversOf(servers)) {
    const current = await server.current();
    if (current.path !== path || current.version !== version) return false;
  }
  return true;
}

function serversOf(servers: WeightServers): readonly WeightServer[] {
  return servers.urls.map((url) => ({
    url,
    current: async () => await currentWeights(url, servers),
    load: async (weights) => await loadOne(url, weights, servers),
  }));
}

async function currentWeights(url: string, servers: WeightServers): Promise<Weights> {
  const { status, body } = await callServer(url, { method: "GET", path: "/model_info" }, servers);
  const { model_path: path, weight_version: version } = body ?? {};
  if (typeof path === "string" && typeof version === "string") return { path, version };
  throw weightsFailure(
    "engine/bad-reply",
    `Cannot load weights at ${url}: /model_info (HTTP ${status}) names no model_path and ` +
      "weight_version, expected an SGLang worker",
    { servers },
  );
}

async function loadOne(url: string, weights: Weights, servers: WeightServers): Promise<void> {
  const call = {
    method: "POST",
    path: "/update_weights_from_disk",
    // Without the flush, the next samples would use keys and values of the previous weights.
    body: { model_path: weights.path, weight_version: weights.version, flush_cache: true },
  } as const;
  let reply = await callServer(url, call, servers);
  if (isUnflushed(reply)) {
    // The new weights are loaded under the previous version and path, because a dropped request
    // still ran.
    await callServer(url, { method: "POST", path: `/flush_cache?timeout=${FLUSH_S}` }, servers);
    reply = await callServer(url, call, servers);
  }
  const { status, body } = reply;
  if (body?.["success"] === true) return;
  // A refusal has the same form and status 400.
  const message = body?.["message"];
  throw weightsFailure(
    "engine/server-error",
    typeof message === "string"
      ? `Cannot load ${weights.path} at ${url}: ${message}`
      : `Cannot load ${weights.path} at ${url}: ${call.path} answered ${status}, expected an SGLang worker's answer`,
    { servers },
  );
}

/** Time for abandoned requests to end, in seconds. */
const FLUSH_S = 30;

/** **Source:** sgl-project/sglang python/sglang/srt/managers/scheduler_components/weight_updater.py, 0.5.23. */
function isUnflushed({ status, body }: WeightReply): boolean {
  const message = body?.["message"];
  return status === 400 && typeof message === "string" && message.includes("cache was not flushed");
}
