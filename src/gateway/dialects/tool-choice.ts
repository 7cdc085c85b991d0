import type { ToolChoice, UnsupportedFeature } from "../conversation.ts";
import { isOpenAiToolType, openAiToolTypes, type OpenAiToolType } from "./openai-tools.ts";
import {
  flagOf,
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  textOf,
  unreadMembers,
  type Json,
} from "./read-body.ts";
import { flatName } from "./tool-namespaces.ts";

/** The tool choice of a request. */
interface ReadChoice {
  readonly toolChoice: ToolChoice;
  readonly unsupported: readonly UnsupportedFeature[];
  /** Members without an effect here, such as `tool_choice.reason`. */
  readonly ignoredFields: readonly string[];
}

const free: ReadChoice = { toolChoice: { type: "auto" }, unsupported: [], ignoredFields: [] };
const place = "tool_choice";
const ofServer = "a server would run this tool, and there is none here";

/**
 * Reads `tool_choice` in OpenAI's spelling: a word, a tool, or a list of tools. Chat Completions
 * nests the members in an object named after the type.
 */
export function readToolChoice(choice: unknown): ReadChoice {
  if (isAbsent(choice)) return free;
  if (typeof choice === "string") return { ...free, toolChoice: wordChoice(choice) };
  const given = objectOf(choice, place);
  const type = given["type"];
  if (type === "allowed_tools") return readAllowed(given);
  if (!isOpenAiToolType(type)) throw unknownChoice(`${place}.type`, type, openAiChoices);
  const name = toolName(given, place);
  if (name !== undefined) return chosen(given, { type: "named", name });
  return { ...free, unsupported: [{ what: `tool_choice ${type}`, why: ofServer }] };
}

/** Reads `function_call` of Chat Completions. */
export function readFunctionCall(choice: unknown): ReadChoice {
  if (isAbsent(choice)) return free;
  if (choice === "auto" || choice === "none") return { ...free, toolChoice: { type: choice } };
  if (typeof choice === "string") {
    throw unknownChoice("function_call", choice, "say auto or none, or name a function");
  }
  const { name } = objectOf(choice, "function_call");
  return { ...free, toolChoice: { type: "named", name: textOf(name, "function_call.name") } };
}

/** Reads `tool_choice` of Messages, including `disable_parallel_tool_use`. */
export function readMessagesChoice(
  choice: unknown,
): ReadChoice & { readonly parallelCalls: boolean } {
  if (isAbsent(choice)) return { ...free, parallelCalls: true };
  const given = objectOf(choice, place);
  const { disable_parallel_tool_use: isSingle } = given;
  const parallelCalls = !flagOf(isSingle, `${place}.disable_parallel_tool_use`);
  const read = ["type", "name", "disable_parallel_tool_use"];
  const ignoredFields = unreadMembers(given, place, read);
  return { ...free, toolChoice: messagesChoice(given), ignoredFields, parallelCalls };
}

function messagesChoice({ type, name }: Json): ToolChoice {
  switch (type) {
    case "auto":
    case "none":
      return { type };
    case "any":
      return { type: "required" };
    case "tool":
      return { type: "named", name: textOf(name, `${place}.name`) };
    default:
      throw unknownChoice(`${place}.type`, type, "say auto, none, any or tool");
  }
}

function wordChoice(word: string): ToolChoice {
  switch (word) {
    case "auto":
    case "none":
    case "required":
      return { type: word };
    default:
      throw unknownChoice(place, word, openAiChoices);
  }
}

function readAllowed(given: Json): ReadChoice {
  const { allowed_tools: nested } = given;
  const inner = isAbsent(nested) ? given : objectOf(nested, `${place}.allowed_tools`);
  const where = isAbsent(nested) ? place : `${place}.allowed_tools`;
  const { mode } = inner;
  if (mode !== "auto" && mode !== "required") {
    throw unknownChoice(`${where}.mode`, mode, "say auto or required");
  }
  const list = listOf(inner["tools"], `${where}.tools`);
  // Server tools are already counted in the request's tools.
  const allowed = list.flatMap((tool, index) => {
    const at = `${where}.tools[${index}]`;
    const read = objectOf(tool, at);
    if (!isOpenAiToolType(read["type"])) {
      throw unknownChoice(`${at}.type`, read["type"], "name a tool by its type and its name");
    }
    return toolName(read, at) ?? [];
  });
  const ignoredFields = [
    ...unreadMembers(given, place, ["type", "mode", "tools", "allowed_tools"]),
    ...(inner === given ? [] : unreadMembers(inner, where, ["mode", "tools"])),
  ];
  if (allowed.length > 0) return { ...free, toolChoice: { type: mode, allowed }, ignoredFields };
  if (list.length === 0) throw invalid(`${where}.tools`, "no tool may be called; say none instead");
  // A server would run all of the allowed tools.
  const toolChoice: ToolChoice = { type: mode === "auto" ? "none" : "auto" };
  const unsupported = [{ what: `tool_choice allowed_tools ${mode}`, why: ofServer }];
  return { toolChoice, unsupported, ignoredFields };
}

/** Returns the policy's name for the chosen tool, or `undefined` if a server would run it. */
function toolName(tool: Json, at: string): string | undefined {
  const type = tool["type"] as OpenAiToolType;
  if (openAiToolTypes[type] !== "client") return undefined;
  switch (type) {
    case "function":
    case "custom": {
      const body = isAbsent(tool[type]) ? tool : objectOf(tool[type], `${at}.${type}`);
      const name = textOf(body["name"], `${at}.name`);
      const namespace = optionalText(tool["namespace"], `${at}.namespace`);
      return namespace === undefined ? name : flatName({ namespace, name });
    }
    case "namespace":
      throw invalid(`${at}.type`, "a namespace cannot be chosen; name its tools");
    default:
      return type;
  }
}

function chosen(given: Json, toolChoice: ToolChoice): ReadChoice {
  const read = ["type", "name", "namespace", "function", "custom"];
  return { ...free, toolChoice, ignoredFields: unreadMembers(given, place, read) };
}

const openAiChoices = "say auto, none or required, or name a tool by its type and its name";

function unknownChoice(at: string, choice: unknown, remedy: string): Error {
  return invalid(at, `there is no choice ${JSON.stringify(choice)}; ${remedy}`);
}
