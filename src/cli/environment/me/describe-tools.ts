import { toolParameters, type ToolDefinition } from "../../../message.ts";
import { stringifyPythonJson } from "../../../../packages/python-values/src/json/json-stringify.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../../../packages/python-values/src/value.ts";
import { printable } from "../../../report/text-style.ts";

/** Lists tools for a person: each with its parameters and the first line of its description. */
export function listTools(tools: readonly ToolDefinition[]): string {
  if (tools.length === 0) return "(none)";
  return tools.map(listTool).join("\n");
}

function listTool(tool: ToolDefinition): string {
  const signature = `${tool.name}(${parametersIn(tool).map(describeParameter).join(", ")})`;
  const [line = ""] = descriptionOf(tool).trim().split("\n");
  return printable(line === "" ? signature : `${signature}\n    ${line}`);
}

/** Shows a tool's complete definition. */
export function showTool(tool: ToolDefinition): string {
  const schema = toolParameters(tool);
  const parts = [listTool(tool).split("\n", 1)[0], descriptionOf(tool).trim()];
  if (schema !== undefined) parts.push(stringifyPythonJson(schema, { ensureAscii: false }));
  return printable(parts.filter((part) => part !== "").join("\n"));
}

interface Parameter {
  readonly name: string;
  readonly schema: PyValue;
  readonly isRequired: boolean;
}

function parametersIn(tool: ToolDefinition): readonly Parameter[] {
  const schema = toolParameters(tool);
  const properties = isPyDict(schema) ? schema.get("properties") : undefined;
  if (!isPyDict(schema) || !isPyDict(properties)) return [];
  const required = schema.get("required");
  return [...properties].map(([name, each]) => ({
    name,
    schema: each,
    isRequired: isPyList(required) && required.includes(name),
  }));
}

/** Describes a parameter, such as `days: integer`. A question mark follows if the parameter is optional. */
function describeParameter({ name, schema, isRequired }: Parameter): string {
  return `${name}${isRequired ? "" : "?"}: ${isPyDict(schema) ? typeOf(schema) : "any"}`;
}

function typeOf(schema: PyDict): string {
  const choices = schema.get("enum");
  if (isPyList(choices)) return choices.map((choice) => stringifyPythonJson(choice)).join(" | ");
  const type = schema.get("type");
  if (isPyList(type)) return type.map(String).join(" | ");
  return typeof type === "string" ? type : "any";
}

function descriptionOf({ openai }: ToolDefinition): string {
  const body = openai.get("function");
  const text = isPyDict(body) ? body.get("description") : undefined;
  return typeof text === "string" ? text : "";
}
