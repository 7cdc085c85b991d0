import { RolloutError } from "../../errors.ts";
import { startDeadline } from "../../async/deadline.ts";
import type { EngineDescription } from "../engine.ts";
import type { HttpEngineSettings } from "./http-engine-options.ts";
import { failureOfOutcome, failureOfStatus, readErrorMessage } from "./http-failure.ts";
import type { HttpOutcome, HttpReply } from "./http-transport.ts";
import type { Worker } from "./worker-set.ts";

/** The objects that control calls work with. A control call is any request other than sampling. */
export interface ControlContext {
  readonly settings: HttpEngineSettings;
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined;
  /** Aborts when the engine is closed. */
  readonly closing: AbortSignal;
  /** The expected server with its article, such as `an SGLang server`. */
  readonly expected: string;
}

/**
 * Requests the description of one server after the other, until one answers.
 *
 * @throws the last server's RolloutError if none answers.
 */
export async function describeFirst(
  workers: readonly Worker[],
  describe: (worker: Worker) => Promise<EngineDescription>,
): Promise<EngineDescription> {
  for (const [index, worker] of workers.entries()) {
    try {
      return await describe(worker);
    } catch (error) {
      const unreachable = error instanceof RolloutError && error.code === "engine/unreachable";
      if (!unreachable || index === workers.length - 1) throw error;
    }
  }
  throw new RolloutError("engine/unreachable", "Cannot describe the engine: no address was given");
}

/**
 * Reads one of a server's pages.
 *
 * @throws RolloutError `engine/unreachable` if the server does not answer in time.
 */
export async function getPage(
  worker: Worker,
  path: string,
  context: ControlContext,
): Promise<HttpReply> {
  const { settings, signal, closing, expected } = context;
  const outcome = await callControl(
    worker,
    { method: "GET", path },
    { settings, parents: [signal, closing] },
  );
  if (outcome.type === "reply") return outcome;
  signal?.throwIfAborted();
  if (closing.aborted) {
    throw new RolloutError("engine/unreachable", "Cannot describe the engine: it was closed");
  }
  const failure = failureOfOutcome(outcome, settings.timeouts.controlMs);
  throw new RolloutError(
    "engine/unreachable",
    `Cannot reach the engine at ${worker.url}${path}: ${failure.problem}, ` +
      `expected ${expected}; is it running, and is the address right?`,
    { cause: failure.cause, retryable: true },
  );
}

/** Returns the error of a description for which the server returned a status other than 200. */
export function refusedDescription(
  worker: Worker,
  reply: HttpReply,
  { expected }: Pick<ControlContext, "expected">,
): RolloutError {
  const failure = failureOfStatus(reply.status, readErrorMessage(reply.text));
  // OpenAI's clients are given an address that ends so.
  const [, root] = (reply.status === 404 && /^(.*)\/v1$/.exec(worker.url)) || [];
  const remedy = root === undefined ? "" : `; give the server's own address, ${root}, without /v1`;
  return new RolloutError(
    failure.code,
    `Cannot describe the engine at ${worker.url}: ${failure.problem}, ` +
      `expected ${expected} (${failure.expected})${remedy}`,
    { retryable: failure.retry },
  );
}

/** Makes one control call with its own deadline. Does not throw. */
export async function callControl(
  worker: Worker,
  request: { readonly method: "GET" | "POST"; readonly path: string; readonly body?: string },
  {
    settings,
    parents,
  }: { settings: HttpEngineSettings; parents: readonly (AbortSignal | undefined)[] },
): Promise<HttpOutcome> {
  const { clock, timeouts, headers } = settings;
  using deadline = startDeadline({ ms: timeouts.controlMs, parents, clock });
  const { signal } = deadline;
  return await worker.control.send({ ...request, headers, signal });
}
