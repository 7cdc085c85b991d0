import { callControl } from "../http/control-call.ts";
import type { Worker } from "../http/worker-set.ts";
import { toServerRequestIds } from "./request-body.ts";
import type { VllmSettings } from "./vllm-options.ts";

/** Where servers take aborts: those that sample ids, and those in development mode. */
const PATHS = ["/inference/v1/abort_requests", "/abort_requests"];

/** What says that the server has no such path, or was started without it. */
const ABSENT = new Set([403, 404, 405]);

/**
 * Makes what tells one server to stop sampling a request. The dropped connection tells it too; behind
 * a proxy that may not reach the server. Bounded, never throws; a path that is absent is asked once. Resolves as
 * `SamplingProtocol.abortRequest()` does.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/api_router.py and
 * vllm/entrypoints/rl/online/api_router.py.
 */
export function createRequestAborter(
  worker: Worker,
  settings: VllmSettings,
): (wireId: string) => Promise<boolean> {
  const absent = new Set<string>();
  return async (wireId) => {
    const body = JSON.stringify({ request_ids: toServerRequestIds(wireId) });
    for (const path of PATHS) {
      if (absent.has(path)) continue;
      const request = { method: "POST", path, body } as const;
      const outcome = await callControl(worker, request, { settings, parents: [] });
      if (outcome.type !== "reply") return true;
      if (!ABSENT.has(outcome.status)) return outcome.status === 200;
      absent.add(path);
    }
    return false;
  };
}
