import { isObject } from "../../values/is-object.ts";
import { readErrorMessage } from "../http/http-failure.ts";
import type { HttpOutcome, HttpReply } from "../http/http-transport.ts";
import type { FailedReply } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { refuseRequest } from "../http/refuse-request.ts";
import { parseLenientObject } from "../http/reply-reading.ts";

/** True if the server has no such path, as opposed to no such model. */
export function lacksPath(outcome: HttpOutcome): boolean {
  if (outcome.type !== "reply") return false;
  if (outcome.status === 405 || outcome.status === 501) return true;
  return outcome.status === 404 && !lacksModel(outcome);
}

/**
 * True if the server reports that the paths for ids are switched off. Releases from 0.32 on need a
 * flag for them.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/factories.py.
 */
export function isDisabled(outcome: HttpOutcome): boolean {
  return (
    outcome.type === "reply" && outcome.status === 403 && /--enable-scale-out\b/.test(outcome.text)
  );
}

/**
 * Returns the reply for `/inference/v1/generate` if it is switched off and no other path may be
 * used.
 */
export function refuseDisabled(): FailedReply {
  return refuseRequest(
    "HTTP 403 (the server was started without /inference/v1/generate)",
    "`vllm serve` with --enable-scale-out, or --engine-api completions",
  );
}

/**
 * True if the prompt leaves no room for one more token. The completions API reports the remaining
 * budget, which is 0 for a prompt that fills the context.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/serve/utils/api_utils.py (`get_max_tokens`) and
 * vllm/sampling_params.py.
 */
export function leavesNoRoom({ status, text }: HttpReply): boolean {
  return (
    status === 400 && readErrorMessage(text).startsWith("max_tokens must be at least 1, got 0")
  );
}

/** Returns the reply for a request with columns to a server without `/inference/v1/generate`. */
export function refuseColumns(): FailedReply {
  return refuseRequest(
    "side columns, which vLLM returns on /inference/v1/generate only",
    "`vllm serve` with --enable-scale-out, and not --engine-api completions",
  );
}

/**
 * True for the answer of a server that returns kept tokens to a request that bounds no set: HTTP 500 with an empty
 * message.
 *
 * **Source:** recorded from vLLM 0.32.0 with `--return-sampling-mask`.
 */
export function needsMask({ status, text }: HttpReply, { turn }: PieceRequest): boolean {
  const { error } = status === 500 ? parseLenientObject(text) : {};
  if (!isObject(error) || error["message"] !== "") return false;
  const { temperature = 1, topK = -1, extra = {} } = turn.sampling;
  const bound = extra["top_k"] ?? topK;
  return temperature <= 0 || !(typeof bound === "number" && bound > 0);
}

/** Returns the refusal of a request with kept tokens that bounds no set. */
export function refuseUnbounded(): FailedReply {
  return refuseRequest(
    "HTTP 500 without a message",
    "a temperature and a topK above 0, if the server was started with --return-sampling-mask",
  );
}

/** Returns the reply for a prompt that fills the context. */
export function refuseFullContext({ text }: HttpReply, promptLength: number): FailedReply {
  return {
    type: "failed",
    failure: {
      code: "engine/prompt-too-long",
      problem: `HTTP 400 (${readErrorMessage(text)}) for a prompt of ${promptLength} ids`,
      expected: "prompt and output to fit the context",
      retry: false,
      maySample: false,
    },
  };
}

/**
 * True if the server does not serve the model.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/serve/engine/serving.py (`_check_model`).
 */
export function lacksModel({ status, text }: HttpReply): boolean {
  if (status !== 404) return false;
  const { error } = parseLenientObject(text);
  if (isObject(error) && error["param"] === "model") return true;
  return /\bmodel\b.*\bdoes not exist\b/i.test(readErrorMessage(text));
}

/**
 * True if the server could not write NaN. Python's JSON writer refuses NaN, and the server answers
 * HTTP 400 with the writer's message.
 *
 * **Source:** python/cpython Lib/json/encoder.py; starlette/responses.py (`allow_nan=False`).
 */
export function isNanRefusal({ status, text }: HttpReply): boolean {
  return status === 400 && text.includes("Out of range float values are not JSON compliant");
}

/** Returns the reply for scores that the server could not write. */
export function refuseNan(): FailedReply {
  return {
    type: "failed",
    failure: {
      code: "engine/nan",
      problem: "the engine met NaN",
      expected: "finite logits",
      retry: false,
      maySample: false,
    },
  };
}

/** Returns the reply for a model that is not served. `served` are the served names, if known. */
export function refuseModel(
  reply: HttpReply,
  { model, served }: { model: string | undefined; served: readonly string[] },
): FailedReply {
  const names = served.map((name) => JSON.stringify(name)).join(", ");
  const message = readErrorMessage(reply.text);
  return refuseRequest(
    `HTTP 404 (${message})`,
    names === ""
      ? `a server of model ${JSON.stringify(model ?? "")}`
      : `model to be one that is served: ${names}`,
  );
}

/** The lowest temperature above 0. The server raises lower ones to it. */
const LOWEST_TEMPERATURE = 0.01;

/**
 * Returns a refusal for a temperature that the server would silently change.
 *
 * **Source:** vllm-project/vllm vllm/sampling_params.py (`_MAX_TEMP`).
 */
export function refuseAlteredTemperature({ turn }: PieceRequest): FailedReply | undefined {
  const { temperature = 1 } = turn.sampling;
  if (temperature <= 0 || temperature >= LOWEST_TEMPERATURE) return undefined;
  return refuseRequest(
    `a temperature of ${temperature}, which vLLM raises to ${LOWEST_TEMPERATURE}`,
    `0, or at least ${LOWEST_TEMPERATURE}`,
  );
}
