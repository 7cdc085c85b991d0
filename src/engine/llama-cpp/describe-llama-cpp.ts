import { isObject } from "../../values/is-object.ts";
import { RolloutError } from "../../errors.ts";
import type { ControlContext } from "../http/control-call.ts";
import { describeFirst, getPage, refusedDescription } from "../http/control-call.ts";
import type { EngineDescription } from "../engine.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { LlamaCppSettings } from "./llama-cpp-options.ts";

/** The objects that `describeLlamaCpp()` works with. */
interface DescribeContext extends Omit<ControlContext, "expected"> {
  readonly settings: LlamaCppSettings;
}

/**
 * Requests a server's model, its release and the context length of one slot.
 *
 * A router, which serves several models, answers with its own properties and a context of length 0
 * if the request names no model.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-context.cpp (`/props`), and for the router
 * tools/server/server-models.cpp (`get_router_props`).
 *
 * @throws the last address's RolloutError if none answers; `engine/bad-request` for a router if no
 *   model is named.
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
