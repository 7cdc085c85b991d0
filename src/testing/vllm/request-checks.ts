import { RequestRefused, badRequest, badShape } from "./error-replies.ts";

/**
 * Reads a prompt of ids.
 *
 * @throws RequestRefused
 */
export function readPrompt(value: unknown, field: string): readonly number[] {
  if (!Array.isArray(value)) {
    const message = typeof value === "string" ? "the server has no tokenizer" : "Field required";
    throw new RequestRefused(badShape(field, message));
  }
  if (value.length === 0) {
    const message = "List should have at least 1 item after validation, not 0";
    throw new RequestRefused(badShape(field, message));
  }
  const wrong = value.findIndex((id) => !Number.isInteger(id));
  if (wrong >= 0) {
    throw new RequestRefused(badShape(`${field}.${wrong}`, "Input should be a valid integer"));
  }
  if (value.some((id: number) => id < 0)) {
    const message = `Value error, ${field} must not contain negative values`;
    throw new RequestRefused(badShape(field, message));
  }
  return value as number[];
}

/**
 * Checks a model's name, where one is given.
 *
 * @throws RequestRefused
 */
export function checkModel(model: unknown, served: readonly string[]): void {
  if (model === undefined || model === null || model === "") return;
  if (typeof model !== "string") {
    throw new RequestRefused(badShape("model", "Input should be a valid string"));
  }
  if (served.includes(model)) return;
  throw new RequestRefused({
    status: 404,
    message: `The model \`${model}\` does not exist.`,
    type: "NotFoundError",
    param: "model",
  });
}

/**
 * Holds prompt and budget of a completion against the context.
 *
 * **Source:** vllm-project/vllm vllm/renderers/params.py (TokenizeParams).
 *
 * @throws RequestRefused
 */
export function fitCompletionBudget({
  promptLength,
  maxNewTokens,
  contextLength,
}: {
  promptLength: number;
  maxNewTokens: number;
  contextLength: number;
}): void {
  if (maxNewTokens > contextLength) {
    const message =
      `max_tokens=${maxNewTokens} cannot be greater than ` +
      `max_model_len=max_total_tokens=${contextLength}. Please request fewer output tokens.`;
    throw new RequestRefused(
      badRequest(message, { parameter: "max_tokens", value: `${maxNewTokens}` }),
    );
  }
  const total = promptLength + maxNewTokens;
  if (total <= contextLength) return;
  // A tokenizer would stop there; prompts of ids are spoken of alike.
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
