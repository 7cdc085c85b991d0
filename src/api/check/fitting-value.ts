import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../../packages/python-values/src/value.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import { toolParameters, type ToolDefinition } from "../../message.ts";

/** The deepest nesting of schemas that values are made for. */
export const deepestSchema = 5;

/** Returns valid arguments of a tool, as far as its schema defines them. */
export function fittingArguments(tool: ToolDefinition): PyDict {
  const value = fittingValue(toolParameters(tool));
  return isPyDict(value) ? value : new Map();
}

/** The most characters of a list's JSON. Lists in lists would otherwise multiply their least sizes. */
const mostCharacters = 1_000_000;

/** Returns the number of times that a list may have an item. */
export function mostItems(item: PyValue): number {
  return Math.floor(mostCharacters / (writeCompactJson(item).length + 1));
}

/**
 * Returns the simplest value that a schema allows. Deeply nested parts become null, and lists of more than a million
 * characters are cut.
 */
export function fittingValue(schema: PyValue | undefined, depth = 0): PyValue {
  if (!isPyDict(schema) || depth > deepestSchema) return null;
  const [choice] = listIn(schema, "enum");
  if (choice !== undefined) return choice;
  if (schema.has("const")) return schema.get("const")!;
  const [alternative] = alternativesIn(schema);
  if (alternative !== undefined) return fittingValue(alternative, depth);
  switch (typesIn(schema)[0]) {
    case "object":
      return new Map(
        [...propertiesIn(schema)].map(([name, each]) => [name, fittingValue(each, depth + 1)]),
      );
    case "array": {
      const item = fittingValue(schema.get("items"), depth + 1);
      const size = Math.max(1, countIn(schema, "minItems") ?? 1);
      return new Array<PyValue>(Math.min(size, Math.max(1, mostItems(item)))).fill(item);
    }
    case "integer":
    case "number":
      return fittingNumber(schema);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return "x".repeat(Math.max(1, countIn(schema, "minLength") ?? 1));
  }
}

function fittingNumber(schema: PyDict): PyValue {
  const least = schema.get("minimum");
  if (least !== undefined) return least;
  const below = schema.get("exclusiveMinimum");
  if (typeof below === "bigint") return below + 1n;
  if (typeof below === "number") return below + 1;
  const most = schema.get("maximum");
  return (typeof most === "bigint" || typeof most === "number") && most < 1 ? most : 1n;
}

/** Returns the list under a keyword, or an empty one. */
export function listIn(schema: PyDict, keyword: string): readonly PyValue[] {
  const value = schema.get(keyword) ?? null;
  return isPyList(value) ? value : [];
}

/** Returns the schemas of which a value fits one. */
export function alternativesIn(schema: PyDict): readonly PyValue[] {
  return [...listIn(schema, "anyOf"), ...listIn(schema, "oneOf")];
}

/** Returns the types that a schema allows. */
export function typesIn(schema: PyDict): readonly PyValue[] {
  const given = schema.get("type");
  return given === undefined ? [] : isPyList(given) ? given : [given];
}

/** Returns the schemas of an object's members, by name. */
export function propertiesIn(schema: PyDict): PyDict {
  const properties = schema.get("properties");
  return isPyDict(properties) ? properties : new Map();
}

/** The longest text and list that a schema's limits ask for. */
const longest = 100_000;

/** Returns a limit such as `minLength`. `undefined` if the schema has no such limit, or one that is too large to try. */
export function countIn(schema: PyDict, keyword: string): number | undefined {
  const value = schema.get(keyword);
  const count = typeof value === "bigint" ? Number(value) : value;
  return typeof count === "number" && count >= 0 && count < longest ? Math.floor(count) : undefined;
}
