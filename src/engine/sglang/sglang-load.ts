import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { ControlContext } from "../http/control-call.ts";
import { getPage } from "../http/control-call.ts";
import type { WorkerLoad } from "../engine.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { meanOf, readMetrics, sumOf } from "../http/prometheus-text.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";

/**
 * Requests the load of a server: `/v1/loads`, or `/get_load` before release 0.5.16, or else the
 * metrics page of a server that was started with `--enable-metrics`. A router reports the number of
 * requests at each of its workers.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/entrypoints/http_server.py and
 * sgl-model-gateway/src/server.rs (`/workers`).
 *
 * @throws RolloutError `engine/unreachable` if the server does not answer in time.
 */
export async function loadOfSglang(
  worker: Worker,
  { mode, ...context }: ControlContext & { readonly mode: "router" | "direct" | "auto" },
): Promise<readonly WorkerLoad[] | undefined> {
  const { url } = worker;
  if (mode !== "direct") {
    const listed = await getPage(worker, "/workers", context);
    const { workers } = parseLenientObject(listed.text);
    if (listed.status === 200 && Array.isArray(workers)) return readWorkers(workers);
  }
  const loads = await getPage(worker, "/v1/loads?include=core", context);
  const { loads: ranks } = parseLenientObject(loads.text);
  if (loads.status === 200 && Array.isArray(ranks)) return readRanks(ranks, url);
  const legacy = await getPage(worker, "/get_load", context);
  const list = legacy.status === 200 ? readJsonList(legacy.text) : undefined;
  if (list !== undefined) return readRanks(list, url);
  const page = await getPage(worker, "/metrics", context);
  return page.status === 200 ? readSglangMetrics(page.text, url) : undefined;
}

function readWorkers(workers: readonly unknown[]): readonly WorkerLoad[] {
  return workers
    .filter(isObject)
    .flatMap(({ url, load, is_healthy: isHealthy }) =>
      typeof url === "string" && typeof load === "number" && isHealthy !== false
        ? [{ url, runningCount: load }]
        : [],
    );
}

/** Adds up the ranks of a server, because they share its address. */
function readRanks(ranks: readonly unknown[], url: string): readonly WorkerLoad[] | undefined {
  const read = ranks.filter(isObject);
  const waitingCount = sumOfField(read, "num_waiting_reqs");
  // `/get_load` includes queued requests in `num_reqs`.
  const allCount = sumOfField(read, "num_reqs");
  const legacyCount = allCount === undefined ? undefined : allCount - (waitingCount ?? 0);
  const runningCount = sumOfField(read, "num_running_reqs") ?? legacyCount;
  if (runningCount === undefined) return undefined;
  const keyValueTokens = sumOfField(read, "max_total_num_tokens");
  const usages = sumOfField(read, "token_usage");
  const keyValueUse = usages === undefined ? undefined : usages / read.length;
  return [
    { url, runningCount, ...withoutUndefined({ waitingCount, keyValueUse, keyValueTokens }) },
  ];
}

function sumOfField(objects: readonly JsonObject[], name: string): number | undefined {
  const values = objects.map((object) => object[name]).filter((value) => typeof value === "number");
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}

function readJsonList(text: string): readonly unknown[] | undefined {
  const { list } = parseLenientObject(`{"list":${text}}`);
  return Array.isArray(list) ? list : undefined;
}

/** Reads the metrics page. Returns `undefined` if it has no number of requests. */
export function readSglangMetrics(text: string, url: string): readonly WorkerLoad[] | undefined {
  const samples = readMetrics(text);
  const runningCount = sumOf(samples, "sglang:num_running_reqs");
  if (runningCount === undefined) return undefined;
  const rest = {
    waitingCount: sumOf(samples, "sglang:num_queue_reqs"),
    keyValueUse: meanOf(samples, "sglang:token_usage"),
    keyValueTokens: sumOf(samples, "sglang:max_total_num_tokens"),
  };
  return [{ url, runningCount, ...withoutUndefined(rest) }];
}
