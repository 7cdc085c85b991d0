import { customParameters, fixedTools } from "./openai-tool-schemas.ts";
import {
  invalid,
  isAbsent,
  listOf,
  objectOf,
  optionalText,
  textOf,
  type Json,
} from "./read-body.ts";
import { flatName } from "./tool-namespaces.ts";
import { unknownTool, type ToolCollector } from "./tool-set.ts";

/**
 * Every tool type of Chat Completions and Responses, with its treatment:
 *
 * - `client`: the client runs the tool, and the policy sees it.
 * - `server`: a server would run the tool. It is counted, or refused with `constraints: "refuse"`.
 * - `screen`: the tool returns screenshots, which text policies cannot read. It is refused.
 */
export const openAiToolTypes = {
  function: "client",
  custom: "client",
  namespace: "client",
  local_shell: "client",
  shell: "client",
  apply_patch: "client",
  web_search: "server",
  web_search_2025_08_26: "server",
  web_search_preview: "server",
  web_search_preview_2025_03_11: "server",
  file_search: "server",
  code_interpreter: "server",
  image_generation: "server",
  mcp: "server",
  tool_search: "server",
  programmatic_tool_calling: "server",
  computer: "screen",
  computer_use: "screen",
  computer_use_preview: "screen",
} as const;

/** A tool type of OpenAI's protocols. */
export type OpenAiToolType = keyof typeof openAiToolTypes;

type ClientToolType = {
  [Type in OpenAiToolType]: (typeof openAiToolTypes)[Type] extends "client" ? Type : never;
}[OpenAiToolType];

/** True if the tool's type is known. */
export function isOpenAiToolType(type: unknown): type is OpenAiToolType {
  return typeof type === "string" && Object.hasOwn(openAiToolTypes, type);
}

const remedy = "give it as a function with a JSON Schema";

interface ToolPlace {
  readonly place: string;
  readonly into: ToolCollector;
  /** The name of the tool's namespace, if it has one. */
  readonly namespace?: string;
}

/** Reads one tool of a Responses request. */
export function readResponsesTool(tool: Json, place: string, into: ToolCollector): void {
  readTool(tool, { place, into });
}

/**
 * Reads one tool of a Chat Completions request, which nests its members in an object named after
 * its type.
 */
export function readChatTool(tool: Json, place: string, into: ToolCollector): void {
  const type = tool["type"] ?? ("function" in tool ? "function" : undefined);
  if (type !== "function" && type !== "custom") {
    // Chat Completions has no form for calls of the other types.
    if (isOpenAiToolType(type) && openAiToolTypes[type] === "client") {
      throw unknownTool(place, type, remedy);
    }
    readTool(tool, { place, into });
    return;
  }
  const inner = `${place}.${type}`;
  const body = objectOf(tool[type], inner);
  into.ignoreOthers(tool, place, [type]);
  readTool({ ...body, type, ...nestedFormat(type, body, inner) }, { place: inner, into });
}

/** Reads a custom tool's format. Chat Completions nests the grammar in an object. */
function nestedFormat(type: string, { format }: Json, place: string): Json {
  if (type !== "custom" || isAbsent(format)) return {};
  const { type: kind, grammar, ...rest } = objectOf(format, `${place}.format`);
  const inside = isAbsent(grammar) ? {} : objectOf(grammar, `${place}.format.grammar`);
  return { format: { type: kind, ...rest, ...inside } };
}

/** Reads one entry of Chat Completions' `functions`. */
export function readFunctionEntry(tool: Json, place: string, into: ToolCollector): void {
  const { name, description, parameters } = tool;
  into.ignoreOthers(tool, place, ["name", "description", "parameters"]);
  into.add(
    { name: textOf(name, `${place}.name`), description, parameters, form: "function-call" },
    place,
  );
}

function readTool(tool: Json, where: ToolPlace): void {
  const { place, into } = where;
  const type = tool["type"];
  if (!isOpenAiToolType(type)) throw unknownTool(place, type, remedy);
  switch (openAiToolTypes[type]) {
    case "client":
      return clientTools[type as ClientToolType](tool, where);
    case "server":
      if (tool["execution"] === "client") {
        const problem = "tools cannot be looked up later; give all of them in the request";
        throw invalid(`${place}.execution`, problem);
      }
      return into.leaveOut(type);
    case "screen":
      throw invalid(`${place}.type`, "policies here cannot read pictures of a screen");
  }
}

/** The readers of tools that the client runs. */
const clientTools: Readonly<Record<ClientToolType, (tool: Json, where: ToolPlace) => void>> = {
  function: readFunction,
  custom: readCustom,
  namespace: readNamespace,
  local_shell: (tool, where) => readFixed("local_shell", tool, where),
  shell: readShell,
  apply_patch: (tool, where) => readFixed("apply_patch", tool, where),
};

function readFunction(tool: Json, { place, into, namespace }: ToolPlace): void {
  const { description, parameters } = tool;
  into.ignoreOthers(tool, place, ["name", "description", "parameters"]);
  into.add({ name: nameOf(tool, place, namespace), description, parameters, namespace }, place);
}

function readCustom(tool: Json, { place, into, namespace }: ToolPlace): void {
  into.ignoreOthers(tool, place, ["name", "description", "format"]);
  const name = nameOf(tool, place, namespace);
  const parameters = customParameters(tool["format"], `${place}.format`);
  if (parameters.grammar !== undefined) {
    const why = "the policy is shown the grammar, and no engine is asked to keep to it";
    into.addUnsupported("grammar of custom tools", why);
  }
  const { description } = tool;
  const shown = { name, description, parameters: parameters.schema };
  into.add({ ...shown, form: "custom", namespace }, place);
}

function readNamespace(tool: Json, { place, into, namespace }: ToolPlace): void {
  if (namespace !== undefined) throw invalid(place, "a namespace cannot contain another one");
  into.ignoreOthers(tool, place, ["name", "description", "tools"]);
  const name = textOf(tool["name"], `${place}.name`);
  listOf(tool["tools"], `${place}.tools`).forEach((inner, index) => {
    const where = `${place}.tools[${index}]`;
    readTool(objectOf(inner, where), { place: where, into, namespace: name });
  });
}

/** Reads a shell tool: the client runs a local one, a server would run one in a container. */
function readShell(tool: Json, where: ToolPlace): void {
  const place = `${where.place}.environment`;
  const environment = isAbsent(tool["environment"]) ? {} : objectOf(tool["environment"], place);
  switch (environment["type"]) {
    case undefined:
    case "local":
      where.into.ignoreOthers(environment, place, []);
      return readFixed("shell", tool, where);
    case "container_auto":
    case "container_reference":
      return where.into.leaveOut("shell in a container");
    default:
      throw invalid(
        `${place}.type`,
        `there is no environment ${JSON.stringify(environment["type"])}`,
      );
  }
}

function readFixed(type: keyof typeof fixedTools, tool: Json, { place, into }: ToolPlace): void {
  into.ignoreOthers(tool, place, ["environment"]);
  into.add({ name: type, ...fixedTools[type] }, place);
}

function nameOf(tool: Json, place: string, namespace: string | undefined): string {
  const own = textOf(tool["name"], `${place}.name`);
  // Templates only print the description, so that any text is valid.
  optionalText(tool["description"], `${place}.description`);
  return namespace === undefined ? own : flatName({ namespace, name: own });
}
