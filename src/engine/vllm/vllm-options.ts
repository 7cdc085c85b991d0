import { UsageError } from "../../errors.ts";
import type { LogprobConvention } from "../engine.ts";
import type { HttpEngineOptions, HttpEngineSettings } from "../http/http-engine-options.ts";
import { toHttpEngineSettings } from "../http/http-engine-options.ts";

/** One of vLLM's two APIs that take and return ids. */
export type VllmApi = "generate" | "completions";

/** Settings of `createVllmEngine()`. */
export interface VllmEngineOptions extends HttpEngineOptions {
  /** A served model or LoRA adapter. Default: the server's own model. */
  readonly model?: string;
  /**
   * `generate`: `/inference/v1/generate`, ids in and ids out. `completions`: `/v1/completions` with ids as prompt.
   * `auto` (default): `generate`, or `completions` if the server does not have `generate`.
   */
  readonly api?: VllmApi | "auto";
  /**
   * The convention of the server's `--logprobs-mode`. Default: `describe()` determines it with two
   * one-token requests.
   */
  readonly logprobConvention?: LogprobConvention;
  /**
   * The recorded policy version. Default: the version from the server's `/weight_info`, a page of
   * servers that run with `VLLM_SERVER_DEV_MODE=1`.
   */
  readonly policyVersion?: string | (() => string);
  /**
   * Prompts for determining the convention. The model must have their ids. Default: a few low ids.
   */
  readonly probePrompts?: readonly (readonly number[])[];
}

/** The options, complete and checked. */
export interface VllmSettings extends HttpEngineSettings {
  readonly model: string | undefined;
  readonly api: VllmApi | "auto";
  readonly logprobConvention: LogprobConvention | undefined;
  readonly policyVersion: (() => string) | undefined;
  readonly probePrompts: readonly (readonly number[])[];
}

/**
 * Prompts of ids that every vocabulary has. There are several prompts, because a model may be certain of the next token
 * after one of them.
 */
const PROBE_PROMPTS = [[0], [1, 2, 3], [10, 20, 30, 40], [200, 100]];

/**
 * Fills in the defaults.
 *
 * @throws UsageError naming the option that cannot be used.
 */
export function toVllmSettings(options: VllmEngineOptions): VllmSettings {
  const { policyVersion, probePrompts = PROBE_PROMPTS } = options;
  if (probePrompts.some(({ length }) => length === 0)) {
    throw new UsageError("Cannot use an empty prompt in probePrompts: expected at least one id");
  }
  return {
    ...toHttpEngineSettings(options),
    model: options.model,
    api: options.api ?? "auto",
    logprobConvention: options.logprobConvention,
    policyVersion: typeof policyVersion === "string" ? () => policyVersion : policyVersion,
    probePrompts,
  };
}
