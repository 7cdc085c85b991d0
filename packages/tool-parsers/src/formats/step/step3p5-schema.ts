import {
  isPyDict,
  isPyList,
  type PyDict,
  PythonError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters, type ToolDefinition } from "../../tool-definition.ts";
import type { ParseContext } from "../../parse-context.ts";

/** The names of types that are written as JSON strings. */
export const step3p5TextTypes: ReadonlySet<string> = new Set(
  "string str text varchar char enum".split(" "),
);

const knownType =
  /^(?:(?:string|str|text|varchar|char|enum|boolean|bool|binary|object|array|arr|sequence)$|u?int|long|short|unsigned|num|float|dict|list)/;

/** True if the request has a function of this name. */
export function hasStep3p5Function(name: string, context: ParseContext): boolean {
  return findTool(name, context) !== undefined;
}

/**
 * True if the called function has the parameter, or if the function is unknown.
 *
 * @throws PythonError if the function's properties are not a container of names.
 */
export function mayBeStep3p5Parameter(
  name: string,
  functionName: string | undefined,
  context: ParseContext,
): boolean {
  const parameters = parametersOf(functionName, context);
  if (parameters === undefined) return true;
  return containsName(parameters.get("properties") ?? parameters, parameters, name);
}

/**
 * The type of a parameter as its schema names it; `string` if it names none or an unknown type.
 *
 * @throws PythonError if the function's properties are not an object.
 */
export function step3p5TypeOf(
  name: string,
  functionName: string | undefined,
  context: ParseContext,
): string {
  const parameters = parametersOf(functionName, context);
  if (parameters === undefined) return "string";
  const properties = parameters.has("properties")
    ? (parameters.get("properties") ?? null)
    : parameters;
  if (!containsName(properties, parameters, name)) return "string";
  if (!isPyDict(properties)) throw new PythonError("TypeError", "the properties are not an object");
  const schema = properties.get(name);
  const type = isPyDict(schema) ? schema.get("type") : undefined;
  return typeof type === "string" && knownType.test(type) ? type : "string";
}

/** Python's `name in properties`. */
function containsName(properties: PyValue, parameters: PyDict, name: string): boolean {
  const isNull = parameters.has("properties") && parameters.get("properties") === null;
  if (isNull) throw new PythonError("TypeError", "the properties are null");
  if (isPyDict(properties)) return properties.has(name);
  if (isPyList(properties) || typeof properties === "string") return properties.includes(name);
  throw new PythonError("TypeError", "the properties are not a container");
}

function parametersOf(name: string | undefined, context: ParseContext): PyDict | undefined {
  const tool = name === undefined || name === "" ? undefined : findTool(name, context);
  const parameters = tool === undefined ? undefined : toolParameters(tool);
  return isPyDict(parameters) ? parameters : undefined;
}

function findTool(name: string, { tools }: ParseContext): ToolDefinition | undefined {
  return tools.find((tool) => {
    return tool.name === name && (tool.openai.get("type") ?? "function") === "function";
  });
}
