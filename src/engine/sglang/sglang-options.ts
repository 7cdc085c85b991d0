import { UsageError } from "../../errors.ts";
import type { LogprobConvention } from "../engine.ts";
import type { HttpEngineOptions, HttpEngineSettings } from "../http/http-engine-options.ts";
import { toHttpEngineSettings } from "../http/http-engine-options.ts";

/** Settings of `createSglangEngine()`. */
export interface SglangEngineOptions extends HttpEngineOptions {
  /**
   * `direct`: an engine, which can be told to abort a request. `router`: SGLang's gateway, which
   * cannot; there a dropped connection aborts, and a turn that is cut short is told to the workers that it
   * lists, each by itself and with the same headers. `auto` (default): found out when it matters.
   */
  readonly mode?: "router" | "direct" | "auto";
  /** `raw` for a server run with `SGLANG_RETURN_ORIGINAL_LOGPROB=1`. Default `tempered`. */
  readonly logprobConvention?: LogprobConvention;
}

/** The same, complete and checked. */
export interface SglangSettings extends HttpEngineSettings {
  readonly mode: "router" | "direct" | "auto";
  readonly logprobConvention: LogprobConvention;
}

/**
 * Fills in the defaults.
 *
 * @throws UsageError naming the option that cannot be used.
 */
export function toSglangSettings(options: SglangEngineOptions): SglangSettings {
  const settings = toHttpEngineSettings(options);
  const { length: urlCount } = settings.urls;
  if (urlCount > 1 && options.mode === "router") {
    throw new UsageError(`Cannot use ${urlCount} urls in mode "router": expected one`);
  }
  return {
    ...settings,
    mode: urlCount > 1 ? "direct" : (options.mode ?? "auto"),
    logprobConvention: options.logprobConvention ?? "tempered",
  };
}
