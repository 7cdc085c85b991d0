import { RequestRefused, badRequest, badShape, missing, toPython } from "./error-replies.ts";
import type { ReleaseTraits } from "./releases.ts";
import type { ServedColumns } from "./served-columns.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";

/**
 * Reads a prompt of ids.
 *
 * @throws RequestRefused
 */
export function readPrompt(
  value: unknown,
  {
    field,
    memberCount,
    vocabularySize,
  }: { field: string; memberCount: number; vocabularySize: number | undefined },
): readonly number[] {
  if (value === undefined) throw new RequestRefused(missing(field, { memberCount }));
  const shown = { at: field, input: toPython(value) };
  if (!Array.isArray(value)) {
    const message =
      typeof value === "string" ? "the server has no tokenizer" : "Input should be a valid list";
    throw new RequestRefused(badShape({ ...shown, kind: "list_type", message }));
  }
  if (value.length === 0) {
    const message = "List should have at least 1 item after validation, not 0";
    const details = "'field_type': 'List', 'min_length': 1, 'actual_length': 0";
    throw new RequestRefused(badShape({ ...shown, kind: "too_short", message, details }));
  }
  const wrong = value.findIndex((id) => !Number.isInteger(id));
  if (wrong >= 0) {
    const message = "Input should be a valid integer";
    const at = `${field}.${wrong}`;
    const input = toPython(value[wrong]);
    throw new RequestRefused(badShape({ kind: "int_type", at, message, input }));
  }
  const ids = value as number[];
  if (ids.some((id) => id < 0)) {
    const message = `Value error, ${field} must not contain negative values`;
    throw new RequestRefused(badShape({ ...shown, kind: "value_error", message }));
  }
  const unknown = ids.find((id) => id >= (vocabularySize ?? Infinity));
  if (unknown === undefined) return ids;
  throw new RequestRefused(badRequest(`Token id ${unknown} is out of vocabulary`));
}

/**
 * Checks a model's name, if the request has one.
 * @throws RequestRefused
 */
export function checkModel(model: unknown, served: readonly string[]): void {
  if (model === undefined || model === null || model === "") return;
  if (typeof model !== "string") {
    const message = "Input should be a valid string";
    const input = toPython(model);
    throw new RequestRefused(badShape({ kind: "string_type", at: "model", message, input }));
  }
  if (served.includes(model)) return;
  throw new RequestRefused({
    status: 404,
    message: `The model \`${model}\` does not exist. Valid aliases: ${served.join(", ")}.`,
    type: "NotFoundError",
    param: "model",
  });
}

/**
 * Checks the prompt and the budget of a completion against the context. Returns the remaining
 * budget.
 *
 * **Source:** vllm-project/vllm vllm/renderers/params.py (TokenizeParams) and
 * vllm/entrypoints/serve/utils/api_utils.py (`get_max_tokens`).
 *
 * @throws RequestRefused
 */
export function fitCompletionBudget({
  promptLength,
  maxNewTokens,
  contextLength,
  traits,
}: {
  promptLength: number;
  maxNewTokens: number;
  contextLength: number;
  traits: ReleaseTraits;
}): number {
  const { shortensCompletions } = traits;
  if (maxNewTokens > contextLength) {
    const limit = shortensCompletions ? "max_model_len" : "max_model_len=max_total_tokens";
    const message =
      `max_tokens=${maxNewTokens} cannot be greater than ` +
      `${limit}=${contextLength}. Please request fewer output tokens.`;
    throw new RequestRefused(
      badRequest(message, { parameter: "max_tokens", value: `${maxNewTokens}` }),
    );
  }
  if (shortensCompletions) return shorten({ promptLength, maxNewTokens, contextLength });
  const total = promptLength + maxNewTokens;
  if (total <= contextLength) return maxNewTokens;
  // The real server stops tokenizing at the limit, and words the message alike for prompts of ids.
  const qualifier = total === contextLength + 1 ? "at least " : "";
  const message =
    `This model's maximum context length is ${contextLength} tokens. However, you requested ` +
    `${maxNewTokens} output tokens and your prompt contains ${qualifier}${promptLength} input ` +
    `tokens, for a total of ${qualifier}${total} tokens. Please reduce the length of the input ` +
    "prompt or the number of requested output tokens.";
  throw new RequestRefused(
    badRequest(message, { parameter: "input_tokens", value: `${promptLength}` }),
  );
}

/**
 * Cuts the budget to the rest of the context.
 * @throws RequestRefused if the context has no room for a token.
 */
function shorten({
  promptLength,
  maxNewTokens,
  contextLength,
}: {
  promptLength: number;
  maxNewTokens: number;
  contextLength: number;
}): number {
  const room = contextLength - promptLength;
  if (room > 0) return Math.min(maxNewTokens, room);
  if (room === 0) {
    const message = "max_tokens must be at least 1, got 0.";
    throw new RequestRefused(badRequest(message, { parameter: "max_tokens", value: "0" }));
  }
  const message =
    `This model's maximum context length is ${contextLength} tokens. However, your prompt contains ` +
    `${promptLength} input tokens, which exceeds this limit even without any output tokens. Please ` +
    "reduce the length of the input prompt.";
  throw new RequestRefused(
    badRequest(message, { parameter: "input_tokens", value: `${promptLength}` }),
  );
}

/**
 * Checks a request as a server that returns columns does. With kept tokens, the real server fails on a request whose set
 * has no bound.
 *
 * **Source:** recorded from vLLM 0.32.0.
 *
 * @throws RequestRefused
 */
export function checkColumns(
  { routesFrom, samplingParams }: Pick<VllmSequenceRequest, "routesFrom" | "samplingParams">,
  { promptLength, served }: { readonly promptLength: number; readonly served: ServedColumns },
): void {
  const parameter = "routed_experts_prompt_start";
  if (served.routedExperts !== undefined && (routesFrom < 0 || routesFrom > promptLength)) {
    const message = `${parameter} must be between 0 and the prompt length (${promptLength}), inclusive.`;
    throw new RequestRefused(badRequest(message, { parameter, value: `${routesFrom}` }));
  }
  const { temperature, top_k: topK } = samplingParams;
  if (served.keptTokens === undefined || (Number(temperature) > 0 && Number(topK) > 0)) return;
  throw new RequestRefused({ status: 500, message: "", type: "InternalServerError" });
}
