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
 * Has SGLang's servers load weights from a folder that they can read (`/update_weights_from_disk`), all
 * at once. Where one does not, those that did load what they had before again.
 *
 * @throws RolloutError naming the server and what it said; `engine/mixed-weights` as `loadOnAll()` does.
 */
export async function loadSglangWeights(servers: WeightServers, weights: Weights): Promise<void> {
  await loadOnAll(serversOf(servers), weights);
}

/**
 * What the folder lacks, where that can be seen from here.
 *
 * @throws RolloutError where a server does not say what it has.
 */
export async function findSglangProblem(
  servers: WeightServers,
  weights: Weights,
): Promise<string | undefined> {
  return await findProblemForServers(serversOf(servers), weights);
}

/** Whether all servers say that they have these weights. */
export async function haveSglangWeights(
  servers: WeightServers,
  { path, version }: Weights,
): Promise<boolean> {
  for (const server of serversOf(servers)) {
    const has = await server.current();
    if (has.path !== path || has.version !== version) return false;
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
  const asked = {
    method: "POST",
    path: "/update_weights_from_disk",
    // Without the flush, what is sampled next would be behind keys and values of the weights before.
    body: { model_path: weights.path, weight_version: weights.version, flush_cache: true },
  } as const;
  let reply = await callServer(url, asked, servers);
  if (isUnflushed(reply)) {
    // It has them, under the version and path before: somebody's request that was dropped still ran.
    await callServer(url, { method: "POST", path: `/flush_cache?timeout=${FLUSH_S}` }, servers);
    reply = await callServer(url, asked, servers);
  }
  const { status, body } = reply;
  if (body?.["success"] === true) return;
  // A refusal is told in the same form, with the status 400.
  const message = body?.["message"];
  throw weightsFailure(
    "engine/server-error",
    typeof message === "string"
      ? `Cannot load ${weights.path} at ${url}: ${message}`
      : `Cannot load ${weights.path} at ${url}: ${asked.path} answered ${status}, expected an SGLang worker's answer`,
    { servers },
  );
}

/** Time for requests that nobody waits for to come to an end. */
const FLUSH_S = 30;

/** **Source:** sgl-project/sglang python/sglang/srt/managers/scheduler_components/weight_updater.py, 0.5.23. */
function isUnflushed({ status, body }: WeightReply): boolean {
  const message = body?.["message"];
  return status === 400 && typeof message === "string" && message.includes("cache was not flushed");
}
