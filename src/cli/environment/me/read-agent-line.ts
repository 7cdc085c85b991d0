import type { Action } from "../../../environment/environment.ts";
import { toolParameters, type ToolDefinition } from "../../../message.ts";
import { parsePythonJson } from "../../../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../../../packages/python-values/src/python-error.ts";
import { nearestName } from "../../../../packages/python-values/src/support/nearest-name.ts";
import {
  isPyDict,
  type PyDict,
  type PyValue,
} from "../../../../packages/python-values/src/value.ts";

/** The commands of a person who plays the agent, with their help. */
export const agentCommands = {
  "/help": "show these commands",
  "/tools": "list the tools",
  "/tool NAME": "show a tool's complete definition",
  "/policy": "show the policy text",
  "/say TEXT": "say a text to the user that would be read as a call or a command",
  "/quit": "end the conversation and score it (as Ctrl-D does)",
} as const;

/** The meaning of a line. */
export type AgentLine =
  | { readonly type: "act"; readonly action: Action }
  | { readonly type: "show"; readonly what: "help" | "tools" | "policy" }
  | { readonly type: "show-tool"; readonly tool: ToolDefinition }
  | { readonly type: "quit" }
  | { readonly type: "empty" }
  /** The line cannot be used. `why` is a complete sentence without its full stop. */
  | { readonly type: "mistake"; readonly why: string };

/**
 * Reads a line of a person who plays the agent: a command, a call such as `name {"a": 1}` or `name a=1`, or words to the
 * user. A line is a call if its first word is the name of a tool.
 */
export function readAgentLine(line: string, tools: readonly ToolDefinition[]): AgentLine {
  const text = line.trim();
  if (text === "") return { type: "empty" };
  if (text.startsWith("/")) return readCommand(text, tools);
  const [, name = "", rest = ""] = /^([^\s({=]+)\s*(.*)$/s.exec(text) ?? [];
  const tool = tools.find((known) => known.name === name);
  if (tool !== undefined) return readCall(tool, rest.trim());
  if (/^\{.*\}$/s.test(rest) && /^[\w.-]+$/.test(name)) return mistake(unknownTool(name, tools));
  return { type: "act", action: { type: "say", content: text } };
}

function readCommand(text: string, tools: readonly ToolDefinition[]): AgentLine {
  const [, word = "", rest = ""] = /^(\/\S*)\s*(.*)$/s.exec(text) ?? [];
  switch (word) {
    case "/help":
    case "/tools":
    case "/policy":
      return { type: "show", what: word.slice(1) as "help" | "tools" | "policy" };
    case "/tool": {
      const tool = tools.find(({ name }) => name === rest);
      return tool === undefined ? mistake(unknownTool(rest, tools)) : { type: "show-tool", tool };
    }
    case "/say":
      if (rest === "") return mistake("/say needs a text, such as /say Hello");
      return { type: "act", action: { type: "say", content: rest } };
    case "/quit":
      return { type: "quit" };
    default:
      return mistake(
        `${word} is no command; the commands are ${Object.keys(agentCommands).join(", ")}`,
      );
  }
}

function unknownTool(name: string, tools: readonly ToolDefinition[]): string {
  const names = tools.map((tool) => tool.name);
  if (names.length === 0) return `there is no tool ${name}: this task has no tools`;
  const meant = nearestName(name, names);
  const hint = meant === undefined ? "" : `, did you mean ${meant}?`;
  return `there is no tool ${name}${hint || `; the tools are ${names.join(", ")}`}`;
}

/**
 * Reads the arguments of a call, as an object or as pairs.
 *
 * @param written - The text after the tool's name.
 */
function readCall(tool: ToolDefinition, written: string): AgentLine {
  const text = /^\(.*\)$/s.test(written) ? written.slice(1, -1).trim() : written;
  const given = text.startsWith("{") ? readObject(tool, text) : readPairs(tool, text);
  if (typeof given === "string") return mistake(given);
  return { type: "act", action: { type: "call", name: tool.name, arguments: given } };
}

function readObject({ name }: ToolDefinition, text: string): PyDict | string {
  const value = readJson(text);
  if (isPyDict(value)) return value;
  return `the arguments of ${name} are not a JSON object: ${text}`;
}

/** A pair `name=value`. A value with spaces is written in quotes, or is a list or an object. */
const pair =
  /([\w.-]+)=("(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^\s,"'[{][^\s,]*|)(?:\s*,\s*|\s+|$)/y;

function readPairs(tool: ToolDefinition, text: string): PyDict | string {
  const schemas = parametersOf(tool);
  const given = new Map<string, PyValue>();
  pair.lastIndex = 0;
  while (pair.lastIndex < text.length) {
    const place = pair.lastIndex;
    const [, name, value = ""] = pair.exec(text) ?? [];
    if (name === undefined) return unreadable(tool, text.slice(place));
    if (schemas !== undefined && !schemas.has(name)) return unknownParameter(tool, name, schemas);
    given.set(name, readValue(value, schemas?.get(name)));
  }
  return given;
}

function unreadable({ name }: ToolDefinition, rest: string): string {
  return (
    `${name} is a tool, and its arguments cannot be read from ${JSON.stringify(rest)}; expected ${name} {"key": …} or ` +
    `${name} key=value, with quotes around a value with spaces; to say this to the user, write /say ${name} …`
  );
}

function unknownParameter(
  { name: tool }: ToolDefinition,
  name: string,
  schemas: ReadonlyMap<string, PyValue>,
): string {
  const names = [...schemas.keys()];
  const meant = nearestName(name, names);
  const known = names.length === 0 ? "it has none" : `it has ${names.join(", ")}`;
  const hint = meant === undefined ? known : `did you mean ${meant}?`;
  return `${tool} has no parameter ${name}, ${hint} (${tool} {…} passes any arguments)`;
}

/** A text where the schema wants one. Otherwise JSON if it can be read as such, else a text. */
function readValue(written: string, schema: PyValue | undefined): PyValue {
  if (written.startsWith("'")) return written.slice(1, -1);
  const isText = isPyDict(schema) && schema.get("type") === "string";
  if (isText && !written.startsWith('"')) return written;
  return readJson(written) ?? written;
}

/** Returns the schemas of a tool's parameters by name, or `undefined` if it takes others too. */
export function parametersOf(tool: ToolDefinition): ReadonlyMap<string, PyValue> | undefined {
  const schema = toolParameters(tool);
  if (!isPyDict(schema)) return new Map();
  const properties = schema.get("properties");
  const additional = schema.get("additionalProperties");
  if (additional !== undefined && additional !== false) return undefined;
  const entries = isPyDict(properties) ? [...properties] : [];
  return new Map(
    entries.filter((entry): entry is [string, PyValue] => typeof entry[0] === "string"),
  );
}

function readJson(text: string): PyValue | undefined {
  try {
    return parsePythonJson(text);
  } catch (error) {
    if (error instanceof PythonError) return undefined;
    throw error;
  }
}

function mistake(why: string): AgentLine {
  return { type: "mistake", why };
}
