import { callControl } from "../control-call.ts";
import { parseLenientObject } from "../reply-reading.ts";
import type { Worker } from "../worker-set.ts";
import type { VllmSettings } from "./vllm-options.ts";

/** What version of the policy a server says it has. */
export interface PolicyVersions {
  /**
   * The version in a reading that began at `since` (on the engine's clock) or later. Calls that come
   * while one reading is under way share the next. Where a reading fails, what the last one said;
   * `""` where the server says nothing. Does not throw.
   */
  readSince(since: number, signal: AbortSignal): Promise<string>;
  /** Forgets how old the last reading is, because an update is likely. */
  expire(): void;
}

/**
 * Reads `/weight_info`. Servers that have no such page are asked once.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/serve/dev/rlhf/api_router.py.
 */
export function createPolicyVersions({
  worker,
  settings,
  closing,
}: {
  worker: Worker;
  settings: VllmSettings;
  closing: AbortSignal;
}): PolicyVersions {
  const { clock, policyVersion: configured } = settings;
  let version = "";
  let readAt = Number.NEGATIVE_INFINITY;
  let isAbsent = false;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    const startedAt = clock.now();
    const request = { method: "GET", path: "/weight_info" } as const;
    const outcome = await callControl(worker, request, { settings, parents: [closing] });
    readAt = startedAt;
    if (outcome.type !== "reply") return;
    const said = parseLenientObject(outcome.text)["weight_version"];
    if (outcome.status === 200 && typeof said === "string") version = said;
    else if (outcome.status < 500) isAbsent = true;
  }

  return {
    async readSince(since, signal) {
      if (configured !== undefined) return configured();
      while (!isAbsent && readAt < since && !signal.aborted) {
        reading ??= read().finally(() => {
          reading = undefined;
        });
        await orAborted(reading, signal);
      }
      return version;
    },
    expire() {
      readAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Waits for what others wait for too, so that one who gives up does not end it. */
function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
