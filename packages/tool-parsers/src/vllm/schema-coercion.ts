import {
  isPyDict,
  isPyList,
  parsePythonJson,
  type PyDict,
  pythonEquals,
  PythonError,
  pythonLower,
  pythonStrip,
  pythonTruthy,
  type PyValue,
  stringifyPythonJson,
} from "../../../python-values/src/index.ts";
import { toolParameters } from "../tool-definition.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../shared/python/python-number.ts";
import { typesOfSchema } from "../shared/schema/schema-type.ts";
import { writeJson } from "../shared/json/write-json.ts";
import { isFiniteJson } from "../shared/json/is-finite-json.ts";

/**
 * The schemas of a tool's parameters; empty for an unknown tool.
 *
 * @throws PythonError if the tool's schema is not an object.
 */
export function findVllmProperties(name: string, { tools }: ParseContext): PyDict {
  const tool = tools.find((candidate) => candidate.name === name);
  const parameters = tool === undefined ? null : (toolParameters(tool) ?? null);
  if (!pythonTruthy(parameters)) return new Map();
  const properties = isPyDict(parameters) ? (parameters.get("properties") ?? new Map()) : null;
  if (isPyDict(properties)) return properties;
  throw new PythonError("AttributeError", "a schema is not an object");
}

const typeAliases: ReadonlyMap<string, string> = new Map(
  Object.entries({
    string: "str text varchar char enum",
    integer: "int int32 int64 uint uint32 uint64 long short unsigned",
    number: "float float32 float64 double",
    boolean: "bool",
    object: "dict",
    array: "arr list sequence",
  }).flatMap(([type, aliases]) => aliases.split(" ").map((alias) => [alias, type] as const)),
);

type Conversion = (text: string) => PyValue | undefined;

/** The conversions by type, in the order in which they are tried. */
const conversions: readonly (readonly [type: string, convert: Conversion])[] = [
  ["null", (text) => (pythonLower(text) === "null" ? null : undefined)],
  ["integer", (text) => catchPython(() => parsePythonInt(text), "ValueError")],
  ["number", readNumber],
  ["boolean", readBoolean],
  ["object", readFiniteJson],
  ["array", readFiniteJson],
  ["string", (text) => text],
];

/**
 * Converts the text to the first of the types that it fits. If the text fits no type, returns its JSON value, or the
 * text itself if it is not JSON.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/utils.py` (`coerce_to_schema_type`).
 */
export function coerceToSchema(text: string, types: ReadonlySet<string>): PyValue {
  const wanted = new Set(
    [...types].map((type) => {
      const name = pythonLower(pythonStrip(type));
      return typeAliases.get(name) ?? name;
    }),
  );
  for (const [type, convert] of conversions) {
    const value = wanted.has(type) ? convert(text) : undefined;
    if (value !== undefined) return value;
  }
  const json = readFiniteJson(text);
  return json === undefined ? text : json;
}

function readNumber(text: string): PyValue | undefined {
  const value = catchPython(() => parsePythonFloat(text), "ValueError");
  if (value === undefined || !Number.isFinite(value)) return undefined;
  return Number.isInteger(value) ? BigInt(value) : value;
}

function readBoolean(text: string): boolean | undefined {
  const lower = pythonStrip(pythonLower(text));
  if (lower === "true" || lower === "1") return true;
  return lower === "false" || lower === "0" ? false : undefined;
}

/** Reads JSON without infinities, because JSON cannot represent them again. */
function readFiniteJson(text: string): PyValue | undefined {
  const value = catchPython(() => parsePythonJson(text), "ValueError", "TypeError");
  if (value === undefined || !isFiniteJson(value)) return undefined;
  return catchPython(() => stringifyPythonJson(value), "ValueError") === undefined
    ? undefined
    : value;
}

/** Coerces a value by its schema. Returns the same value if that changes nothing. */
function coerceDeep(value: PyValue, schema: PyDict, keepsEqual: boolean): PyValue {
  if (typeof value === "string") return coerceToSchema(value, typesOfSchema(schema));
  if (isPyDict(value)) {
    const properties = schema.get("properties");
    return isPyDict(properties) ? coerceMembers(value, properties, { keepsEqual }) : value;
  }
  if (isPyList(value)) {
    const items = schema.get("items");
    if (!isPyDict(items)) return value;
    const coerced = value.map((item) => coerceDeep(item, items, keepsEqual));
    return coerced.every((item, index) => item === value[index]) ? value : coerced;
  }
  const text = writeJson(value);
  const coerced = coerceToSchema(text, typesOfSchema(schema));
  const isSame = keepsEqual || typeof coerced === typeof value;
  return isSame && pythonEquals(coerced, value) ? value : coerced;
}

/**
 * Coerces each member by its own schema. Returns the same dictionary if that changes nothing. With
 * `keepsEqual`, a value that equals the coerced one but has another type, such as `5.0` for `5`,
 * stays unchanged.
 */
export function coerceMembers(
  value: PyDict,
  properties: PyDict,
  { keepsEqual }: { readonly keepsEqual: boolean },
): PyDict {
  let isChanged = false;
  const members = [...value].map(([key, member]) => {
    const schema = properties.get(key);
    const coerced = isPyDict(schema) ? coerceDeep(member, schema, keepsEqual) : member;
    isChanged ||= coerced !== member;
    return [key, coerced] as const;
  });
  return isChanged ? new Map(members) : value;
}
