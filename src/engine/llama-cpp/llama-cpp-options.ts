import type { HttpEngineOptions, HttpEngineSettings } from "../http/http-engine-options.ts";
import { toHttpEngineSettings } from "../http/http-engine-options.ts";

/** Settings of `createLlamaCppEngine()`. */
export interface LlamaCppEngineOptions extends HttpEngineOptions {
  /** For a server that holds several models: which one. */
  readonly model?: string;
  /** Recorded as the policy's version, which the server does not know. Default `""`. */
  readonly policyVersion?: string | (() => string);
  /**
   * Which of the server's slots, each with a cache of its own, a request goes to. `prompt` (default):
   * the free one whose cache has most of the prompt, as the server finds. `session`: one that the
   * session's id decides; sessions that share one wait for each other and lose their caches to each
   * other.
   */
  readonly slotAffinity?: "prompt" | "session";
}

/** The same, complete and checked. */
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
