import type { PyDict, PyValue } from "../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../packages/python-values/src/value.ts";
import { UsageError } from "./errors.ts";

/** One tool call of an assistant message. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** The arguments exactly as the model wrote them, or as the engine's parser reports them. */
  readonly argumentsText: string;
}

/** A parsed turn of the policy. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string;
  /** The reasoning before the answer, if any, without its markup. */
  readonly reasoning?: string;
  readonly toolCalls?: readonly ToolCall[];
}

/** A message of the conversation. Token ids are never made from it. */
export type Message =
  | { readonly role: "system" | "user"; readonly content: string }
  | AssistantMessage
  | {
      readonly role: "tool";
      readonly content: string;
      readonly toolCallId: string;
      readonly name: string;
    };

/** A tool as the model sees it. */
export interface ToolDefinition {
  readonly name: string;
  /**
   * The complete definition in OpenAI's shape (`{type: "function", function: {name, description, parameters}}`). It
   * keeps the key order and the number format of its source, because templates print it.
   */
  readonly openai: PyDict;
}

/**
 * Reads a tool definition in OpenAI's shape.
 *
 * @throws UsageError if `function.name` is missing. `place` names the definition in the message.
 */
export function toolFromOpenAi(value: PyValue, place: string): ToolDefinition {
  const name = isPyDict(value) ? shownToolName(value) : undefined;
  if (!isPyDict(value) || name === undefined) {
    throw new UsageError(
      `Cannot read ${place}: expected {"type": "function", "function": {"name": …}}`,
    );
  }
  return { name, openai: value };
}

/**
 * Reads a list of tool definitions in OpenAI's shape.
 *
 * @throws UsageError if it is not a list, or an entry has no `function.name`.
 */
export function toolsFromOpenAi(value: PyValue, place: string): readonly ToolDefinition[] {
  if (!isPyList(value)) throw new UsageError(`Cannot read ${place}: expected a list of tools`);
  return value.map((tool, index) => toolFromOpenAi(tool, `${place}[${index}]`));
}

/** Returns the name in a definition of OpenAI's shape, or `undefined` if it has none. */
export function shownToolName(openai: PyDict): string | undefined {
  const body = openai.get("function");
  const name = isPyDict(body) ? body.get("name") : undefined;
  return typeof name === "string" ? name : undefined;
}

/** Returns the JSON Schema of the tool's parameters, or `undefined` if it declares none. */
export function toolParameters(tool: ToolDefinition): PyValue | undefined {
  const body = tool.openai.get("function");
  return isPyDict(body) ? body.get("parameters") : undefined;
}
