import type { PyDict, PyValue } from "../python/value.ts";
import { isPyDict, isPyList } from "../python/value.ts";

/**
 * Whether a value certainly fits a schema: one of the few keywords that tools' schemas are made of, each as
 * it should be. `false` says nothing: the library is to be asked, which first takes some milliseconds to
 * make each schema into a function.
 */
export function plainlyFits(schema: PyValue, value: PyValue): boolean {
  if (!isPyDict(schema)) return false;
  for (const [keyword, given] of schema) {
    if (!annotations.has(keyword) && keywords.get(keyword)?.(given, value, schema) !== true) {
      return false;
    }
  }
  return true;
}

/** What a schema says beside what it demands; formats are not checked. */
const annotations: ReadonlySet<string> = new Set([
  ...["title", "description", "default", "examples", "format"],
]);

/** Says whether the value certainly fits what the keyword demands. */
type Keyword = (given: PyValue, value: PyValue, schema: PyDict) => boolean;

const keywords: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ["type", (given, value) => typeof given === "string" && types.get(given)?.(value) === true],
  ["enum", (given, value) => isPyList(given) && isText(value) && given.includes(value)],
  ["required", (given, value) => isPyList(given) && isPyDict(value) && holdsAll(value, given)],
  ["properties", (given, value) => isPyDict(given) && isPyDict(value) && fitEach(given, value)],
  [
    "additionalProperties",
    (given, value, schema) => given === true || isClosed(given, value, schema),
  ],
  ["items", (given, value) => isPyList(value) && value.every((item) => plainlyFits(given, item))],
]);

const types: ReadonlyMap<string, (value: PyValue) => boolean> = new Map([
  ["string", isText],
  ["boolean", (value: PyValue) => typeof value === "boolean"],
  ["integer", (value: PyValue) => typeof value === "bigint" && Number.isFinite(Number(value))],
  ["number", isNumber],
  ["array", isPyList],
  ["object", isPyDict],
]);

function isText(value: PyValue): value is string {
  return typeof value === "string";
}

function isNumber(value: PyValue): boolean {
  return (typeof value === "bigint" || typeof value === "number") && Number.isFinite(Number(value));
}

function holdsAll(value: PyDict, names: readonly PyValue[]): boolean {
  return names.every((name) => isText(name) && value.has(name));
}

/** Members that every object has count as there to the library, whatever the value holds. */
function fitEach(properties: PyDict, value: PyDict): boolean {
  for (const [name, schema] of properties) {
    if (name in Object.prototype) return false;
    const member = value.get(name);
    // A schema that is broken counts as none, also where nothing is held against it.
    if (member !== undefined && !plainlyFits(schema, member)) return false;
  }
  return true;
}

function isClosed(given: PyValue, value: PyValue, schema: PyDict): boolean {
  const properties = schema.get("properties");
  return (
    given === false &&
    isPyDict(properties) &&
    isPyDict(value) &&
    [...value.keys()].every((name) => properties.has(name))
  );
}
