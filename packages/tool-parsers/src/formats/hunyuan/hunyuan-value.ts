import {
  isPyList,
  parsePythonJson,
  type PyDict,
  PythonError,
  pythonLower,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { requireDict } from "../../shared/schema/require-dict.ts";
import {
  evaluatePythonLiteral,
  requireJson,
  jsonLiteral,
} from "../../shared/python/python-literal.ts";

/**
 * The schema of a parameter; an empty one if it has none.
 *
 * @throws PythonError if a schema is not an object.
 */
export function findHunyuanSchema(name: string, key: string, context: ParseContext): PyDict {
  const tool = context.tools.find((candidate) => candidate.name === name);
  const parameters = tool === undefined ? null : (sglangParameters(tool, context) ?? null);
  if (parameters === null) return new Map();
  const properties = requireDict(parameters).get("properties");
  if (properties === undefined) return new Map();
  const schema = requireDict(properties).get(key);
  return schema === undefined ? new Map() : requireDict(schema);
}

/** The types that a schema allows, by their standard names, without `null`. */
function typesOf(schema: PyDict): ReadonlySet<string> {
  let options: PyValue = [new Map<string, PyValue>()];
  if (schema.has("type")) options = [schema];
  else options = schema.get("anyOf") ?? schema.get("oneOf") ?? options;
  if (!isPyList(options)) throw new PythonError("TypeError", "the alternatives are not a list");
  const types = options.map((option) => normalizeType(requireDict(option).get("type") ?? "string"));
  return new Set(types.filter((type) => type !== "null"));
}

const typeAliases: ReadonlyMap<string, string> = new Map([
  ...["str", "text", "varchar", "char", "enum"].map((alias) => [alias, "string"] as const),
  ["bool", "boolean"],
  ["binary", "boolean"],
  ["int", "integer"],
  ["float", "number"],
  ["double", "number"],
  ["list", "array"],
  ["dict", "object"],
  ["map", "object"],
]);

function normalizeType(type: PyValue): string {
  if (typeof type !== "string") throw new PythonError("TypeError", "a type is not a string");
  const alias = typeAliases.get(type);
  if (alias !== undefined) return alias;
  const lower = pythonLower(type);
  if (/^(?:int|uint|long|short|unsigned)/.test(lower)) return "integer";
  return /^(?:num|float)/.test(lower) ? "number" : type;
}

/**
 * Reads a parameter's text as the first of its types that fits. If none fits, returns the result of
 * `fallback`.
 *
 * @throws PythonError if the schema has another form than the engines expect.
 */
export function readHunyuanValue(
  text: string,
  schema: PyDict,
  fallback: (text: string) => PyValue,
): PyValue {
  const types = typesOf(schema);
  const lower = pythonLower(text);
  if (types.has("boolean") && (lower === "true" || lower === "false")) return lower === "true";
  const int = types.has("integer")
    ? catchPython(() => parsePythonInt(text), "ValueError")
    : undefined;
  if (int !== undefined) return int;
  const number = types.has("number") ? readNumber(text) : undefined;
  if (number !== undefined) return number;
  const isComplex = [...types].some((type) => !simpleTypes.has(type));
  if (isComplex || !types.has("string")) {
    const json = catchPython(() => parsePythonJson(text), "ValueError");
    if (json !== undefined) return json;
  }
  return types.has("string") ? text : fallback(text);
}

const simpleTypes: ReadonlySet<string> = new Set(["string", "boolean", "integer", "number"]);

function readNumber(text: string): PyValue | undefined {
  const read = /[.eE]/.test(text) ? () => parsePythonFloat(text) : () => parsePythonInt(text);
  return catchPython<PyValue>(read, "ValueError");
}

/** Returns the schema with its list of types written as alternatives (`anyOf`). */
export function alternativesOf(schema: PyDict): PyDict {
  const types = schema.get("type");
  if (!isPyList(types)) return schema;
  return new Map([["anyOf", types.map((type) => new Map([["type", type]]))]]);
}

/**
 * Reads the text as JSON or as a Python literal, or returns it unchanged.
 *
 * @throws PythonError `TypeError` for a literal that JSON cannot represent.
 */
export function deserialize(text: string): PyValue {
  const json = catchPython(() => parsePythonJson(text));
  if (json !== undefined) return json;
  return requireJson(catchPython(() => evaluatePythonLiteral(text)) ?? jsonLiteral(text));
}
