import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";
import { RolloutError } from "../../errors.ts";
import type { EngineDescription } from "../engine.ts";
import { failureOfOutcome, failureOfStatus, readErrorMessage } from "../http/http-failure.ts";
import type { ChatConnection } from "./chat-connection.ts";

/** Number of models that a warning lists. */
const mostListed = 5;

/**
 * Reads a server's `/models`. Returns nothing if the server has no such list, because many have none.
 *
 * **Source:** vLLM and SGLang (`max_model_len`), OpenRouter (`context_length`).
 *
 * @throws RolloutError `engine/unreachable` and `engine/unauthorized`.
 */
export async function describeServedModel(
  { transport, headers }: ChatConnection,
  { model, signal }: { readonly model: string; readonly signal: AbortSignal },
): Promise<Pick<EngineDescription, "contextLength" | "warnings">> {
  const outcome = await transport.send({ method: "GET", path: "/models", headers, signal });
  signal.throwIfAborted();
  if (outcome.type !== "reply") {
    const { code, problem, expected, retry } = failureOfOutcome(outcome, Infinity);
    if (code !== "engine/unreachable") return {};
    throw unusable(transport.url, { code, problem, expected, retry });
  }
  const { status, text } = outcome;
  if (status === 401) {
    const failure = failureOfStatus(status, readErrorMessage(text));
    throw unusable(transport.url, failure);
  }
  const listed = status === 200 ? readList(text) : [];
  if (listed.length === 0) return {};
  const found = listed.find(({ id }) => id === model);
  if (found === undefined) return { warnings: [unlisted(model, listed)] };
  const length = found["max_model_len"] ?? found["context_length"];
  return Number.isSafeInteger(length) && (length as number) >= 1
    ? { contextLength: length as number }
    : {};
}

function unusable(
  url: string,
  {
    code,
    problem,
    expected,
    retry,
  }: Pick<ReturnType<typeof failureOfStatus>, "code" | "problem" | "expected" | "retry">,
): RolloutError {
  const message = `Cannot use the model server at ${url}: ${problem}, expected ${expected}`;
  return new RolloutError(code, message, { retryable: retry });
}

type Listed = Readonly<Record<string, unknown>> & { readonly id: string };

function readList(text: string): readonly Listed[] {
  const body = parseJsonText(text);
  const data = isObject(body) ? body["data"] : undefined;
  if (!Array.isArray(data)) return [];
  return data.filter((each): each is Listed => isObject(each) && typeof each["id"] === "string");
}

function unlisted(model: string, listed: readonly Listed[]): string {
  const names = listed.slice(0, mostListed).map(({ id }) => id);
  const more = listed.length > mostListed ? ` and ${listed.length - mostListed} more` : "";
  return `the server does not list the model ${model}; it lists ${names.join(", ")}${more}`;
}
