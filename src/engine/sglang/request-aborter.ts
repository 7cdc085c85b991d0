import { callControl } from "../http/control-call.ts";
import type { Worker } from "../http/worker-set.ts";
import type { SglangSettings } from "./sglang-options.ts";

/** Aborts requests at engines. */
interface RequestAborter {
  /** Aborts a request as `SamplingProtocol.abortRequest()` does. A router has no path for it. */
  readonly abortRequest: (worker: Worker, wireId: string) => Promise<boolean>;
  /** Stops further abort requests, because the server is a router. */
  readonly disable: () => void;
}

/**
 * Creates an aborter. In mode `auto`, a server that answers with the status 404 counts as a router.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/entrypoints/http_server.py (`/abort_request`);
 * sgl-model-gateway/src/server.rs, which routes no such path.
 */
export function createRequestAborter(settings: SglangSettings): RequestAborter {
  const { mode } = settings;
  let canAbort = mode !== "router";
  return {
    disable() {
      canAbort = false;
    },
    async abortRequest(worker, wireId) {
      if (!canAbort) return false;
      const body = JSON.stringify({ rid: wireId });
      const request = { method: "POST", path: "/abort_request", body } as const;
      const outcome = await callControl(worker, request, { settings, parents: [] });
      if (outcome.type !== "reply") return true;
      if (outcome.status === 404 && mode === "auto") canAbort = false;
      return outcome.status === 200;
    },
  };
}
