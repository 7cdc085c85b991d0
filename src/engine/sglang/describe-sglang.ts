import { RolloutError } from "../../errors.ts";
import { startDeadline } from "../deadline.ts";
import type { EngineDescription } from "../engine.ts";
import { failureOfOutcome, failureOfStatus, readErrorMessage } from "../http-failure.ts";
import type { HttpReply } from "../http-transport.ts";
import type { SglangSettings } from "./sglang-options.ts";
import type { Worker } from "./worker-set.ts";

/** What asking a server about itself works with. */
export interface DescribeContext {
  readonly settings: SglangSettings;
  readonly signal: AbortSignal | undefined;
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal;
}

/** What a server said of itself. */
export interface DescribedServer {
  readonly description: EngineDescription;
  /** Whether it is a router, which samples nothing itself and aborts nothing. */
  readonly isRouter: boolean;
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
  for (const [index, worker] of workers.entries()) {
    try {
      return await describeWorker(worker, context);
    } catch (error) {
      const unreachable = error instanceof RolloutError && error.code === "engine/unreachable";
      if (!unreachable || index === workers.length - 1) throw error;
    }
  }
  throw new RolloutError("engine/unreachable", "Cannot describe the engine: no address was given");
}

async function describeWorker(worker: Worker, context: DescribeContext): Promise<DescribedServer> {
  const isRouter = await findOutWhetherRouter(worker, context);
  const model = await getModelInfo(worker, context);
  const version = model["weight_version"];
  const name = model["served_model_name"] ?? model["model_path"];
  const contextLength =
    (isRouter ? undefined : await getStatedContextLength(worker, context)) ??
    (await getModelContextLength(worker, context));
  const description: EngineDescription = {
    kind: "sglang",
    url: worker.url,
    ...(typeof name === "string" ? { model: name } : {}),
    ...(typeof version === "string" ? { policyVersion: version } : {}),
    logprobConvention: context.settings.logprobConvention,
    ...(contextLength === undefined ? {} : { contextLength }),
  };
  return { description, isRouter };
}

/** Only a router lists workers. */
async function findOutWhetherRouter(worker: Worker, context: DescribeContext): Promise<boolean> {
  const { mode } = context.settings;
  if (mode !== "auto") return mode === "router";
  const reply = await get(worker, "/workers", context);
  return reply.status === 200 && Array.isArray(readJsonObject(reply.text)["workers"]);
}

async function getModelInfo(worker: Worker, context: DescribeContext): Promise<JsonObject> {
  let reply = await get(worker, "/model_info", context);
  // Releases before the rename.
  if (reply.status === 404) reply = await get(worker, "/get_model_info", context);
  if (reply.status !== 200) {
    const failure = failureOfStatus(reply.status, readErrorMessage(reply.text));
    throw new RolloutError(
      failure.code,
      `Cannot describe the engine at ${worker.url}: ${failure.problem}, ` +
        `expected an SGLang server (${failure.expected})`,
      { retryable: failure.retry },
    );
  }
  const info = readJsonObject(reply.text);
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
  context: DescribeContext,
): Promise<number | undefined> {
  let reply = await get(worker, "/server_info", context);
  if (reply.status === 404) reply = await get(worker, "/get_server_info", context);
  return reply.status === 200 ? asNumber(readJsonObject(reply.text)["context_length"]) : undefined;
}

/** From the list of models, where the server states what the model itself allows. */
async function getModelContextLength(
  worker: Worker,
  context: DescribeContext,
): Promise<number | undefined> {
  const reply = await get(worker, "/v1/models", context);
  const list = reply.status === 200 ? readJsonObject(reply.text)["data"] : undefined;
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  return isObject(first) ? asNumber(first["max_model_len"]) : undefined;
}

/** @throws RolloutError `engine/unreachable` where nothing answers in time. */
async function get(
  worker: Worker,
  path: string,
  { settings, signal, closing }: DescribeContext,
): Promise<HttpReply> {
  const { clock, timeouts, headers } = settings;
  using deadline = startDeadline({ ms: timeouts.controlMs, parents: [signal, closing], clock });
  const outcome = await worker.control.send({
    method: "GET",
    path,
    headers,
    signal: deadline.signal,
  });
  if (outcome.type === "reply") return outcome;
  signal?.throwIfAborted();
  if (closing.aborted) {
    throw new RolloutError("engine/unreachable", "Cannot describe the engine: it was closed");
  }
  const failure = failureOfOutcome(outcome, timeouts.controlMs);
  throw new RolloutError(
    "engine/unreachable",
    `Cannot reach the engine at ${worker.url}${path}: ${failure.problem}, ` +
      "expected an SGLang server; is it running, and is the address right?",
    { cause: failure.cause, retryable: true },
  );
}

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function asNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** An empty object for anything but an object: what is missing is then said by the caller. */
function readJsonObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return {};
  }
}
