import {
  callServer,
  findProblemForServers,
  loadOnAll,
  weightsFailure,
  type Weights,
  type WeightServer,
  type WeightServers,
} from "../http/weight-servers.ts";

/** Has vLLM's servers load weights, and knows from where they have those that it had them load. */
export interface VllmWeightLoader {
  /**
   * Has all servers load weights from a folder that they can read: none samples meanwhile, for nobody, and
   * what was cached by the old ones is dropped. Where one does not, all load what they had before again.
   *
   * @throws RolloutError naming the server and what it said; `engine/mixed-weights` as `loadOnAll()` does.
   */
  load(weights: Weights): Promise<void>;
  /**
   * What the folder lacks, where that can be seen from here.
   *
   * @throws RolloutError where a server does not say what it has.
   */
  findProblem(weights: Weights): Promise<string | undefined>;
}

/**
 * vLLM's servers keep the version of their weights and not where they are from: at first that is what
 * they were started with.
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
      // What is there while they are loaded is no version: a server that stops halfway shows.
      await call("POST", "/update_weight_version", { new_version: loadingVersion });
      const reload = { method: "reload_weights", kwargs: { weights_path: path } };
      await call("POST", "/collective_rpc", reload);
      const { success } = await call("POST", "/reset_prefix_cache?reset_external=true");
      if (success === false) {
        // What is sampled next would be behind keys and values of the weights before.
        throw weightsFailure(
          "engine/server-error",
          `Cannot load weights at ${url}: /reset_prefix_cache did not drop what the weights before had cached`,
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
          `Cannot load weights at ${url}: it does not say which it has, expected vLLM 0.32 or newer`,
          { servers },
        );
      },
      async pause() {
        await call("POST", "/pause?mode=abort");
      },
      load,
      /**
       * What was read before a load failed is taken into the next one, which may fail over it or leave a part
       * of it: only the one after that is clean.
       */
      async giveBack(weights) {
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
  asked: Parameters<typeof callServer>[1],
  servers: WeightServers,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await callServer(url, asked, servers);
  if (status === 200) return body ?? {};
  const hint =
    status === 404
      ? ", expected vLLM in development mode: start `vllm serve` with VLLM_SERVER_DEV_MODE=1"
      : `: ${messageOf(body)}`;
  throw weightsFailure(
    "engine/server-error",
    `Cannot load weights at ${url}: ${asked.path} answered ${status}${hint}`,
    { servers },
  );
}

/** vLLM words errors in three ways. */
function messageOf(body: Readonly<Record<string, unknown>> | undefined): string {
  const { error, detail, message } = body ?? {};
  const inner =
    typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
  const said = inner ?? detail ?? message;
  return typeof said === "string" ? said : "it said no more";
}

/** What the server was started with. */
function rootOf({ data }: Readonly<Record<string, unknown>>): string | undefined {
  const [first] = Array.isArray(data) ? (data as readonly { root?: unknown }[]) : [];
  return typeof first?.root === "string" ? first.root : undefined;
}
