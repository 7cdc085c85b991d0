import type { ColumnName } from "../../columns/column-specs.ts";
import { isObject, type JsonObject } from "../../values/is-object.ts";
import { RolloutError } from "../../errors.ts";
import type { ControlContext } from "../http/control-call.ts";
import { describeFirst, getPage, refusedDescription } from "../http/control-call.ts";
import type { EngineDescription } from "../engine.ts";
import { parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { SglangSettings } from "./sglang-options.ts";

/** The objects that `describeSglang()` works with. */
interface DescribeContext extends Omit<ControlContext, "expected"> {
  readonly settings: SglangSettings;
}

/** The description of a server. */
interface DescribedServer {
  readonly description: EngineDescription;
  /** True for a router, which forwards sampling requests and has no abort. */
  readonly isRouter: boolean;
}

interface SglangControl extends DescribeContext {
  readonly expected: string;
}

/**
 * Requests a server's model, policy version and context length. Tries each address until one
 * answers.
 *
 * @throws the last address's RolloutError if none answers.
 */
export async function describeSglang(
  workers: readonly Worker[],
  context: DescribeContext,
): Promise<DescribedServer> {
  let isRouter = false;
  const control = { ...context, expected: "an SGLang server" };
  const description = await describeFirst(workers, async (worker) => {
    isRouter = await isRouterAt(worker, control);
    return describeWorker(worker, { isRouter, context: control });
  });
  return { description, isRouter };
}

async function describeWorker(
  worker: Worker,
  { isRouter, context }: { isRouter: boolean; context: SglangControl },
): Promise<EngineDescription> {
  const model = await getModelInfo(worker, context);
  const version = model["weight_version"];
  const name = model["served_model_name"] ?? model["model_path"];
  const info = isRouter ? {} : await getServerInfo(worker, context);
  const contextLength =
    asNumber(info["context_length"]) ?? (await getModelContextLength(worker, context));
  const columns = readColumns(info);
  return {
    kind: "sglang",
    url: worker.url,
    ...(typeof name === "string" && { model: name }),
    ...(typeof version === "string" && { policyVersion: version }),
    logprobConvention: context.settings.logprobConvention,
    ...(contextLength !== undefined && { contextLength }),
    ...(columns !== undefined && { columns }),
  };
}

/**
 * Reads the side columns that a server was started to return. Returns `undefined` if the server does not report them.
 *
 * **Source:** recorded from SGLang 0.5.23.
 */
function readColumns(info: JsonObject): readonly ColumnName[] | undefined {
  const routes = info["enable_return_routed_experts"];
  if (typeof routes !== "boolean") return undefined;
  const most = asNumber(info["sampling_mask_max_tokens"]) ?? 0;
  return [
    ...(routes ? (["routedExperts"] as const) : []),
    ...(most > 0 ? (["keptTokens"] as const) : []),
    "topLogprobs",
    ...(info["enable_return_indexer_topk"] === true ? (["indexerTopK"] as const) : []),
  ];
}

/** True for a router. Only a router has the page `/workers`. */
async function isRouterAt(worker: Worker, context: SglangControl): Promise<boolean> {
  const { mode } = context.settings;
  if (mode !== "auto") return mode === "router";
  const reply = await getPage(worker, "/workers", context);
  return reply.status === 200 && Array.isArray(parseLenientObject(reply.text)["workers"]);
}

async function getModelInfo(worker: Worker, context: SglangControl): Promise<JsonObject> {
  let reply = await getPage(worker, "/model_info", context);
  // The name in older releases.
  if (reply.status === 404) reply = await getPage(worker, "/get_model_info", context);
  if (reply.status !== 200) throw refusedDescription(worker, reply, context);
  const info = parseLenientObject(reply.text);
  if (typeof info["model_path"] === "string") return info;
  throw new RolloutError(
    "engine/bad-reply",
    `Cannot describe the engine at ${worker.url}: /model_info names no model_path, ` +
      "expected an SGLang server",
  );
}

/** Reads the server's arguments. Returns an empty object if the server does not report them. */
async function getServerInfo(worker: Worker, context: SglangControl): Promise<JsonObject> {
  let reply = await getPage(worker, "/server_info", context);
  if (reply.status === 404) reply = await getPage(worker, "/get_server_info", context);
  return reply.status === 200 ? parseLenientObject(reply.text) : {};
}

/** Reads the context length from the list of models, which reports the model's own limit. */
async function getModelContextLength(
  worker: Worker,
  context: SglangControl,
): Promise<number | undefined> {
  const reply = await getPage(worker, "/v1/models", context);
  const list = reply.status === 200 ? parseLenientObject(reply.text)["data"] : undefined;
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  return isObject(first) ? asNumber(first["max_model_len"]) : undefined;
}

function asNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
