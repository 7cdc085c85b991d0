import type { HttpEngineOptions, HttpEngineSettings } from "../http/http-engine-options.ts";
import { toHttpEngineSettings } from "../http/http-engine-options.ts";

/** Settings of `createLlamaCppEngine()`. */
export interface LlamaCppEngineOptions extends HttpEngineOptions {
  /** The name of the model, for a server that has several. */
  readonly model?: string;
  /** The recorded policy version, which the server does not report. Default `""`. */
  readonly policyVersion?: string | (() => string);
  /**
   * The way a request gets one of the server's slots, each of which has its own cache. `prompt`
   * (default): the server selects the free slot that has the longest part of the prompt in its
   * cache. `session`: the session's id selects the slot. Sessions with the same slot wait for each
   * other and replace each other's cache.
   */
  readonly slotAffinity?: "prompt" | "session";
}

/** The options, complete and checked. */
export interface LlamaCppSettings extends HttpEngineSettings {
  readonly model: string | undefined;
  readonly policyVersion: () => string;
  readonly slotAffinity: "prompt" | "session";
}

/**
 * Fills in the defaults.
 *
 * @throws UsageError naming the option that cannot be used.
 */
export function toLlamaCppSettings(options: LlamaCppEngineOptions): LlamaCppSettings {
  const { policyVersion = "" } = options;
  return {
    ...toHttpEngineSettings(options),
    model: options.model,
    policyVersion: typeof policyVersion === "string" ? () => policyVersion : policyVersion,
    slotAffinity: options.slotAffinity ?? "prompt",
  };
}
