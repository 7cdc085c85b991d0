import { RolloutError } from "../../errors.ts";
import type { ControlContext } from "../http/control-call.ts";
import { describeFirst, getPage, refusedDescription } from "../http/control-call.ts";
import type { EngineDescription } from "../engine.ts";
import { isObject, parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { LlamaCppSettings } from "./llama-cpp-options.ts";

/** What asking a server about itself works with. */
interface DescribeContext extends Omit<ControlContext, "expected"> {
  readonly settings: LlamaCppSettings;
}

/**
 * Asks a server for its model, its release and the length of a slot's context.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-context.cpp (`/props`), and for a server of several models
 * tools/server/server-models.cpp (`get_router_props`): it answers for itself where none is named, with a context of
 * length 0, and refuses what is to be sampled.
 *
 * @throws RolloutError of the last address where none answers; `engine/bad-request` for a router where no model is
 *   named.
 */
export async function describeLlamaCpp(
  workers: readonly Worker[],
  context: DescribeContext,
): Promise<EngineDescription> {
  const { settings } = context;
  const control = { ...context, expected: "a llama.cpp server" };
  const query = settings.model === undefined ? "" : `?model=${encodeURIComponent(settings.model)}`;
  return describeFirst(workers, async (worker) => {
    const reply = await getPage(worker, `/props${query}`, control);
    if (reply.status !== 200) throw refusedDescription(worker, reply, control);
    const properties = parseLenientObject(reply.text);
    const defaults = properties["default_generation_settings"];
    if (!isObject(defaults)) {
      throw new RolloutError(
        "engine/bad-reply",
        `Cannot describe the engine at ${worker.url}: /props has no default_generation_settings, ` +
          `expected ${control.expected}`,
      );
    }
    if (properties["role"] === "router") {
      throw new RolloutError(
        "engine/bad-request",
        `Cannot use the engine at ${worker.url}: it is llama.cpp's router, which samples nothing by itself, ` +
          "expected the name of one of its models as the option model (--served-model); /v1/models lists them",
      );
    }
    const model = properties["model_alias"] ?? properties["model_path"];
    const { build_info: engineVersion } = properties;
    const contextLength = defaults["n_ctx"];
    const policyVersion = settings.policyVersion();
    return {
      kind: "llama-cpp",
      url: worker.url,
      ...(typeof model === "string" && { model }),
      ...(typeof engineVersion === "string" && { engineVersion }),
      ...(policyVersion !== "" && { policyVersion }),
      logprobConvention: "raw",
      ...(typeof contextLength === "number" && { contextLength }),
    };
  });
}
