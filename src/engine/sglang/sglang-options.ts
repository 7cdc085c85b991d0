import { UsageError } from "../../errors.ts";
import type { LogprobConvention } from "../engine.ts";
import type { HttpEngineOptions, HttpEngineSettings } from "../http/http-engine-options.ts";
import { toHttpEngineSettings } from "../http/http-engine-options.ts";

/** Settings of `createSglangEngine()`. */
export interface SglangEngineOptions extends HttpEngineOptions {
  /**
   * The kind of server.
   *
   * - `direct`: an engine, which can abort a request.
   * - `router`: SGLang's gateway, which cannot. Dropping the connection aborts. To cut a turn
   *   short, the abort goes to each worker that the router lists, with the same headers.
   * - `auto` (default): detected when needed.
   */
  readonly mode?: "router" | "direct" | "auto";
  /** `raw` for a server run with `SGLANG_RETURN_ORIGINAL_LOGPROB=1`. Default `tempered`. */
  readonly logprobConvention?: LogprobConvention;
}

/** The options, complete and checked. */
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
