import { RolloutError } from "../../errors.ts";
import type { ControlContext } from "../http/control-call.ts";
import { describeFirst, getPage, refusedDescription } from "../http/control-call.ts";
import type { EngineDescription } from "../engine.ts";
import type { JsonObject } from "../http/reply-reading.ts";
import { isObject, parseLenientObject } from "../http/reply-reading.ts";
import type { Worker } from "../http/worker-set.ts";
import type { SglangSettings } from "./sglang-options.ts";

/** What asking a server about itself works with. */
interface DescribeContext extends Omit<ControlContext, "expected"> {
  readonly settings: SglangSettings;
}

/** What a server said of itself. */
interface DescribedServer {
  readonly description: EngineDescription;
  /** Whether it is a router, which samples nothing itself and aborts nothing. */
  readonly isRouter: boolean;
}

interface SglangControl extends DescribeContext {
  readonly expected: string;
}

/**
 * Asks a server for its model, its policy version and its context length. The addresses are asked in
 * turn until one answers.
 *
 * @throws RolloutError of the last address where none answers.
 */
export async function describeSglang(
  workers: readonly Worker[],
  context: DescribeContext,
): Promise<DescribedServer> {
  let isRouter = false;
  const control = { ...context, expected: "an SGLang server" };
  const description = await describeFirst(workers, async (worker) => {
    isRouter = await findOutWhetherRouter(worker, control);
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
  const contextLength =
    (isRouter ? undefined : await getStatedContextLength(worker, context)) ??
    (await getModelContextLength(worker, context));
  return {
    kind: "sglang",
    url: worker.url,
    ...(typeof name === "string" && { model: name }),
    ...(typeof version === "string" && { policyVersion: version }),
    logprobConvention: context.settings.logprobConvention,
    ...(contextLength !== undefined && { contextLength }),
  };
}

/** Only a router lists workers. */
async function findOutWhetherRouter(worker: Worker, context: SglangControl): Promise<boolean> {
  const { mode } = context.settings;
  if (mode !== "auto") return mode === "router";
  const reply = await getPage(worker, "/workers", context);
  return reply.status === 200 && Array.isArray(parseLenientObject(reply.text)["workers"]);
}

async function getModelInfo(worker: Worker, context: SglangControl): Promise<JsonObject> {
  let reply = await getPage(worker, "/model_info", context);
  // Releases before the rename.
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

/** From the server's own arguments; absent where it was started without one. */
async function getStatedContextLength(
  worker: Worker,
  context: SglangControl,
): Promise<number | undefined> {
  let reply = await getPage(worker, "/server_info", context);
  if (reply.status === 404) reply = await getPage(worker, "/get_server_info", context);
  if (reply.status !== 200) return undefined;
  return asNumber(parseLenientObject(reply.text)["context_length"]);
}

/** From the list of models, where the server states what the model itself allows. */
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
