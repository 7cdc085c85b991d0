import { callControl } from "../http/control-call.ts";
import type { Worker } from "../http/worker-set.ts";
import type { SglangSettings } from "./sglang-options.ts";

/** Tells engines to stop sampling. */
interface RequestAborter {
  /** As `SamplingProtocol.abortRequest()`. A router cannot be told itself: it has no such path. */
  readonly abortRequest: (worker: Worker, wireId: string) => Promise<boolean>;
  /** Remembers that a router listens, and asks it no more. */
  readonly giveUp: () => void;
}

/**
 * Makes what aborts requests. In mode `auto` a router is known by its 404.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/entrypoints/http_server.py (`/abort_request`);
 * sgl-model-gateway/src/server.rs, which routes no such path.
 */
export function createRequestAborter(settings: SglangSettings): RequestAborter {
  const { mode } = settings;
  let canAbort = mode !== "router";
  return {
    giveUp() {
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
