import { callControl } from "../http/control-call.ts";
import type { Worker } from "../http/worker-set.ts";
import { toServerRequestIds } from "./request-body.ts";
import type { VllmSettings } from "./vllm-options.ts";

/**
 * The paths for aborts: that of servers with the ids-only API, and that of servers in development
 * mode.
 */
const PATHS = ["/inference/v1/abort_requests", "/abort_requests"];

/** Statuses of a path that is absent or switched off. */
const ABSENT = new Set([403, 404, 405]);

/**
 * Creates a function that aborts a request at one server.
 *
 * Dropping the connection aborts too, but a proxy may keep the server's connection open. The
 * function is bounded in time and never throws. It requests an absent path only once, and resolves
 * as `SamplingProtocol.abortRequest()` does.
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
