import type { ControlContext } from "../http/control-call.ts";
import { getPage } from "../http/control-call.ts";
import type { WorkerLoad } from "../engine.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { meanOf, readMetrics, sumOf } from "../http/prometheus-text.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";

/**
 * Requests the load of a server: its metrics page, or `/load` if it has no metrics. `/load` only
 * counts requests.
 *
 * **Source:** vllm-project/vllm vllm/v1/metrics/loggers.py and
 * vllm/entrypoints/serve/instrumentator.
 *
 * @throws RolloutError `engine/unreachable` if the server does not answer in time.
 */
export async function loadOfVllm(
  worker: Worker,
  context: ControlContext,
): Promise<readonly WorkerLoad[] | undefined> {
  const page = await getPage(worker, "/metrics", context);
  const read = page.status === 200 ? readVllmMetrics(page.text, worker.url) : undefined;
  if (read !== undefined) return read;
  const counted = await getPage(worker, "/load", context);
  const { server_load: runningCount } = parseLenientObject(counted.text);
  if (counted.status !== 200 || typeof runningCount !== "number") return undefined;
  return [{ url: worker.url, runningCount }];
}

/** Reads the metrics page. Returns `undefined` if it has no number of requests. */
export function readVllmMetrics(text: string, url: string): readonly WorkerLoad[] | undefined {
  const samples = readMetrics(text);
  const runningCount = sumOf(samples, "vllm:num_requests_running");
  if (runningCount === undefined) return undefined;
  const capacities = samples
    .filter(({ name }) => name === "vllm:cache_config_info")
    .map(({ labels }) => Number(labels["num_gpu_blocks"]) * Number(labels["block_size"]))
    .filter((tokens) => tokens > 0);
  const rest = {
    waitingCount: sumOf(samples, "vllm:num_requests_waiting"),
    // The name changed in 0.11.
    keyValueUse: meanOf(samples, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    keyValueTokens:
      capacities.length === 0 ? undefined : capacities.reduce((sum, tokens) => sum + tokens, 0),
  };
  return [{ url, runningCount, ...withoutUndefined(rest) }];
}
