import {
  callServer,
  findProblemForServers,
  loadOnAll,
  weightsFailure,
  type Weights,
  type WeightServer,
  type WeightServers,
} from "../http/weight-servers.ts";

/** Loads weights on vLLM servers, and remembers the folder of the weights that it loaded. */
interface VllmWeightLoader {
  /**
   * Loads weights on all servers from a folder that they can read. No server samples for any client
   * during this, and caches of the previous weights are dropped. If one server fails, all load
   * their previous weights again.
   *
   * @throws RolloutError naming the server and its message; `engine/mixed-weights` as `loadOnAll()`
   *   does.
   */
  load(weights: Weights): Promise<void>;
  /**
   * Finds the reason why the servers cannot load a folder, as far as this machine can see.
   *
   * @throws RolloutError if a server does not report its weights.
   */
  findProblem(weights: Weights): Promise<string | undefined>;
}

/**
 * Creates a loader. vLLM servers report the version of their weights, but not their folder. Until
 * the first load, the folder is the model that the server was started with.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/rl/online/api_router.py (`/pause`,
 * `/update_weight_version`, `/weight_info`), vllm/entrypoints/serve/dev/rpc/api_router.py
 * (`/collective_rpc`) and vllm/v1/worker/gpu_worker.py (`reload_weights`), 0.32.0.
 */
export function createVllmWeightLoader(servers: WeightServers): VllmWeightLoader {
  const paths = new Map<string, string>();
  const all = servers.urls.map((url): WeightServer => {
    const call = async (method: "GET" | "POST", path: string, body?: object) =>
      await callOne(url, { method, path, ...(body !== undefined && { body }) }, servers);
    const load = async ({ path, version }: Weights): Promise<void> => {
      // A marker instead of a version, so that a server that stops during the load is recognised.
      await call("POST", "/update_weight_version", { new_version: loadingVersion });
      const reload = { method: "reload_weights", kwargs: { weights_path: path } };
      await call("POST", "/collective_rpc", reload);
      const { success } = await call("POST", "/reset_prefix_cache?reset_external=true");
      if (success === false) {
        // The next samples would use keys and values of the previous weights.
        throw weightsFailure(
          "engine/server-error",
          `Cannot load weights at ${url}: /reset_prefix_cache did not drop the cache of the previous weights`,
          { servers },
        );
      }
      await call("POST", "/update_weight_version", { new_version: version });
      paths.set(url, path);
    };
    return {
      url,
      async current() {
        const { weight_version: version } = await call("GET", "/weight_info");
        const path = paths.get(url) ?? rootOf(await call("GET", "/v1/models"));
        if (typeof version === "string" && path !== undefined) return { path, version };
        throw weightsFailure(
          "engine/bad-reply",
          `Cannot load weights at ${url}: it does not report its weights, expected vLLM 0.32 or newer`,
          { servers },
        );
      },
      async pause() {
        await call("POST", "/pause?mode=abort");
      },
      load,
      /**
       * Loads twice. After a failed load, the tensors that were already read are mixed into the next load, which may
       * fail or keep some of them. Only the second load is clean.
       */
      async restore(weights) {
        await load(weights).catch(() => {});
        await load(weights);
      },
      async resume() {
        await call("POST", "/resume");
      },
    };
  });
  return {
    load: async (weights) => await loadOnAll(all, weights),
    findProblem: async (weights) => await findProblemForServers(all, weights),
  };
}

const loadingVersion = "loading";

async function callOne(
  url: string,
  request: Parameters<typeof callServer>[1],
  servers: WeightServers,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await callServer(url, request, servers);
  if (status === 200) return body ?? {};
  const hint =
    status === 404
      ? ", expected vLLM in development mode: start `vllm serve` with VLLM_SERVER_DEV_MODE=1"
      : `: ${messageOf(body)}`;
  throw weightsFailure(
    "engine/server-error",
    `Cannot load weights at ${url}: ${request.path} answered ${status}${hint}`,
    { servers },
  );
}

/** Reads the message of an error, which vLLM writes in three forms. */
function messageOf(body: Readonly<Record<string, unknown>> | undefined): string {
  const { error, detail, message } = body ?? {};
  const inner =
    typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
  const text = inner ?? detail ?? message;
  return typeof text === "string" ? text : "no message";
}

/** Returns the model that the server was started with. */
function rootOf({ data }: Readonly<Record<string, unknown>>): string | undefined {
  const [first] = Array.isArray(data) ? (data as readonly { root?: unknown }[]) : [];
  return typeof first?.root === "string" ? first.root : undefined;
}
