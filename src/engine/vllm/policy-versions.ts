import { callControl } from "../http/control-call.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { VllmSettings } from "./vllm-options.ts";

/**
 * What version of the policy a server says it has. Where a reading fails it is what the last one
 * said, and `""` where the server says nothing.
 */
export interface PolicyVersions {
  /** In a reading that begins now or later. Calls that come while one is under way share the next. */
  readNow(signal: AbortSignal): Promise<string>;
  /** In the last reading, where that is not older, or in the one under way. */
  readRecent(maxAgeMs: number, signal: AbortSignal): Promise<string>;
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
  let isAbsent = false;
  let startedCount = 0;
  /** The number, from 1, of the last reading that ended. */
  let lastEnded = 0;
  let startedAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    const number = ++startedCount;
    const now = clock.now();
    const request = { method: "GET", path: "/weight_info" } as const;
    const outcome = await callControl(worker, request, { settings, parents: [closing] });
    lastEnded = number;
    startedAt = now;
    reading = undefined;
    if (outcome.type !== "reply") return;
    const said = parseLenientObject(outcome.text)["weight_version"];
    if (outcome.status === 200 && typeof said === "string") version = said;
    else if (outcome.status < 500) isAbsent = true;
  }

  async function readNow(signal: AbortSignal): Promise<string> {
    if (configured !== undefined) return configured();
    const wanted = startedCount + 1;
    while (!isAbsent && lastEnded < wanted && !signal.aborted) {
      reading ??= read();
      await orAborted(reading, signal);
    }
    return version;
  }

  return {
    readNow,
    async readRecent(maxAgeMs, signal) {
      if (configured !== undefined) return configured();
      if (clock.now() - startedAt <= maxAgeMs) return version;
      if (reading === undefined) return await readNow(signal);
      await orAborted(reading, signal);
      return version;
    },
    expire() {
      startedAt = Number.NEGATIVE_INFINITY;
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
