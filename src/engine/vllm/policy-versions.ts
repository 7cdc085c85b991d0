import { callControl } from "../http/control-call.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { VllmSettings } from "./vllm-options.ts";

/**
 * Reads the policy version that a server reports. If a reading fails, the result is that of the last successful one.
 * The result is `""` if the server reports no version.
 */
export interface PolicyVersions {
  /**
   * Returns the result of a reading that starts after this call. Calls during a reading share the
   * next one.
   */
  readNow(signal: AbortSignal): Promise<string>;
  /**
   * Returns the last reading if it is at most `maxAgeMs` old. Otherwise waits for the pending reading, or starts one.
   */
  readRecent(maxAgeMs: number, signal: AbortSignal): Promise<string>;
  /** Makes the last reading count as old, because an update is likely. */
  expire(): void;
}

/**
 * Creates a reader of `/weight_info`. A server without that page is asked only once.
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
  /** The number, from 1, of the last completed reading. */
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
    const reported = parseLenientObject(outcome.text)["weight_version"];
    if (outcome.status === 200 && typeof reported === "string") version = reported;
    else if (outcome.status < 500) isAbsent = true;
  }

  async function readNow(signal: AbortSignal): Promise<string> {
    if (configured !== undefined) return configured();
    const target = startedCount + 1;
    while (!isAbsent && lastEnded < target && !signal.aborted) {
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

/** Waits for a promise that other calls share. An abort ends only this wait. */
function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
