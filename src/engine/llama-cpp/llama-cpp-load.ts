import { isObject } from "../../values/is-object.ts";
import type { ControlContext } from "../http/control-call.ts";
import { getPage } from "../http/control-call.ts";
import type { WorkerLoad } from "../engine.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { readMetrics, sumOf } from "../http/prometheus-text.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";

/**
 * Requests the load of a server: `/slots`, each of which has its own cache, and, for the length of the queue, the
 * metrics page of a server that was started with `--metrics`. No release reports the use of the caches.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-context.cpp (`get_slots`, `get_metrics`).
 *
 * @throws RolloutError `engine/unreachable` if the server does not answer in time.
 */
export async function loadOfLlamaCpp(
  worker: Worker,
  context: ControlContext,
): Promise<readonly WorkerLoad[] | undefined> {
  const page = await getPage(worker, "/metrics", context);
  const samples = page.status === 200 ? readMetrics(page.text) : [];
  const listed = await getPage(worker, "/slots", context);
  const { slots } = parseLenientObject(`{"slots":${listed.text}}`);
  const list = listed.status === 200 && Array.isArray(slots) ? slots.filter(isObject) : [];
  const busyCount = list.filter((slot) => slot["is_processing"] === true).length;
  const processing = sumOf(samples, "llamacpp:requests_processing");
  if (processing === undefined && list.length === 0) return undefined;
  const lengths = list.map((slot) => slot["n_ctx"]).filter((length) => typeof length === "number");
  const rest = {
    waitingCount: sumOf(samples, "llamacpp:requests_deferred"),
    keyValueTokens:
      lengths.length === 0 ? undefined : lengths.reduce((sum, length) => sum + length, 0),
  };
  return [{ url: worker.url, runningCount: processing ?? busyCount, ...withoutUndefined(rest) }];
}
