import type { Message, ToolCall, ToolDefinition } from "../message.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict } from "../../packages/python-values/src/value.ts";

/** Returns a message in OpenAI's shape, as chat templates read it. Dictionaries are not changed. */
export function toTemplateMessage(message: Message | PyDict): PyDict {
  if (!("role" in message)) return message;
  const shaped = new Map<string, PyValue>([["role", message.role]]);
  if (message.role === "tool") {
    shaped.set("tool_call_id", message.toolCallId).set("name", message.name);
  }
  shaped.set("content", message.content);
  if (message.role === "assistant" && message.reasoning !== undefined) {
    // vLLM passes both names; SGLang and transformers only the first.
    shaped.set("reasoning_content", message.reasoning).set("reasoning", message.reasoning);
  }
  if (message.role === "assistant" && (message.toolCalls?.length ?? 0) > 0) {
    shaped.set("tool_calls", message.toolCalls?.map(toTemplateCall) ?? []);
  }
  return shaped;
}

/** The role of a message in OpenAI's shape; empty if it has none. */
export function roleOf(message: PyDict): string {
  const role = message.get("role");
  return typeof role === "string" ? role : "";
}

/** Returns the tool definitions as chat templates read them; `null` without tools. */
export function toTemplateTools(tools: readonly ToolDefinition[]): readonly PyValue[] | null {
  return tools.length === 0 ? null : tools.map((tool) => tool.openai);
}

function toTemplateCall({ id, name, argumentsText }: ToolCall): PyDict {
  return new Map<string, PyValue>([
    ["id", id],
    ["type", "function"],
    [
      "function",
      new Map<string, PyValue>([
        ["name", name],
        ["arguments", readArguments(argumentsText)],
      ]),
    ],
  ]);
}

/** True if a call's arguments are a JSON object, which templates get as a dictionary. They get other arguments as text. */
export function isArgumentsObject(text: string): boolean {
  return isPyDict(readArguments(text));
}

/** Templates expect a dictionary; the text of a malformed call is shown as it is. */
function readArguments(text: string): PyValue {
  try {
    const value = parsePythonJson(text);
    return isPyDict(value) ? value : text;
  } catch (error) {
    if (error instanceof PythonError) return text;
    throw error;
  }
}
