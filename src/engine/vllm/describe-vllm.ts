import { isObject } from "../../values/is-object.ts";
import { RolloutError } from "../../errors.ts";
import type { ControlContext } from "../http/control-call.ts";
import { describeFirst, getPage, refusedDescription } from "../http/control-call.ts";
import type { EngineDescription, LogprobConvention } from "../engine.ts";
import type { DescribeCall } from "../http/http-engine.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import { findConvention } from "./find-convention.ts";
import type { PolicyVersions } from "./policy-versions.ts";
import type { ServedModel } from "./served-models.ts";
import { readServedModels } from "./served-models.ts";
import type { VllmSettings } from "./vllm-options.ts";

/** The objects that `describeVllm()` works with. */
interface DescribeContext {
  readonly settings: VllmSettings;
  readonly call: DescribeCall;
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal;
  readonly versionsOf: (worker: Worker) => PolicyVersions;
  readonly warningOf: (worker: Worker) => string | undefined;
}

interface VllmControl extends ControlContext {
  readonly settings: VllmSettings;
}

/**
 * Requests a server's model, context length, release, policy version and logprob convention.
 *
 * @throws the last address's RolloutError if none answers; `engine/bad-request` listing the served
 *   models if the configured model is not one of them.
 */
export async function describeVllm(
  workers: readonly Worker[],
  { settings, call, closing, versionsOf, warningOf }: DescribeContext,
): Promise<EngineDescription> {
  const context = { settings, signal: call.signal, closing, expected: "a vLLM server" };
  return await describeFirst(workers, async (worker) => {
    const model = await getModel(worker, context);
    const engineVersion = await getVersion(worker, context);
    const signal = call.signal ?? closing;
    const policyVersion = await versionsOf(worker).readNow(signal);
    call.signal?.throwIfAborted();
    const { convention, assumption } = await getConvention(worker, { context, call });
    const warnings = [assumption, warningOf(worker)].filter((warning) => warning !== undefined);
    return {
      kind: "vllm",
      url: worker.url,
      model: model.id,
      ...(engineVersion !== undefined && { engineVersion }),
      ...(policyVersion !== "" && { policyVersion }),
      logprobConvention: convention,
      ...(assumption !== undefined && { isConventionAssumed: true }),
      ...(model.contextLength !== undefined && { contextLength: model.contextLength }),
      ...(warnings.length !== 0 && { warnings }),
    };
  });
}

async function getModel(worker: Worker, context: VllmControl): Promise<ServedModel> {
  const reply = await getPage(worker, "/v1/models", context);
  if (reply.status !== 200) throw refusedDescription(worker, reply, context);
  const served = readServedModels(reply.text);
  const [first] = served ?? [];
  if (served === undefined || first === undefined) {
    throw new RolloutError(
      "engine/bad-reply",
      `Cannot describe the engine at ${worker.url}: /v1/models lists no model, ` +
        `expected ${context.expected}`,
    );
  }
  const { model } = context.settings;
  const selected = model === undefined ? first : served.find(({ id }) => id === model);
  if (selected !== undefined) return selected;
  const names = served.map(({ id }) => JSON.stringify(id)).join(", ");
  throw new RolloutError(
    "engine/bad-request",
    `Cannot use model ${JSON.stringify(model)} of the engine at ${worker.url}: ` +
      `it is not served, expected one of ${names}`,
  );
}

async function getVersion(worker: Worker, context: VllmControl): Promise<string | undefined> {
  const reply = await getPage(worker, "/version", context);
  const version = reply.status === 200 ? parseLenientObject(reply.text)["version"] : undefined;
  return typeof version === "string" ? version : undefined;
}

async function getConvention(
  worker: Worker,
  { context, call }: { context: VllmControl; call: DescribeCall },
): Promise<{ convention: LogprobConvention; assumption?: string }> {
  const { logprobConvention: configured, probePrompts: prompts } = context.settings;
  if (configured !== undefined) return { convention: configured };
  const { generate } = call;
  const found = await findConvention({ prompts, generate });
  const convention = found.convention ?? (await getStatedConvention(worker, context));
  if (convention !== undefined) return { convention };
  const assumption =
    "logprobConvention is assumed to be raw, vLLM's default: " +
    `the server's --logprobs-mode could not be determined (${found.problem})`;
  return { convention: "raw", assumption };
}

/**
 * Reads the convention from the server's configuration, which servers in development mode publish.
 */
async function getStatedConvention(
  worker: Worker,
  context: VllmControl,
): Promise<LogprobConvention | undefined> {
  const reply = await getPage(worker, "/server_info?config_format=json", context);
  if (reply.status !== 200) return undefined;
  const { vllm_config: config } = parseLenientObject(reply.text);
  const model = isObject(config) ? config["model_config"] : undefined;
  const mode = isObject(model) ? model["logprobs_mode"] : undefined;
  if (mode === "raw_logprobs") return "raw";
  return mode === "processed_logprobs" ? "processed" : undefined;
}
