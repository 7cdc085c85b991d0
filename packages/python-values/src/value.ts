/**
 * Python's JSON-like values, with distinct `int` and `float`.
 *
 * Chat templates, tool-call parsers and τ-bench all observe the difference between `1` and `1.0`, between `2**53`
 * and its neighbour, and the order of dictionary keys. JavaScript's own objects and numbers preserve none of these,
 * so these modules use the values below instead.
 *
 * | Python | here |
 * |---|---|
 * | `None` | `null` |
 * | `bool` | `boolean` |
 * | `int` | `bigint` |
 * | `float` | `number` |
 * | `str` | `string` (may contain lone surrogates, as in Python) |
 * | `list` | array |
 * | `dict` | `Map` with string keys, in insertion order |
 */
export type PyValue = null | boolean | bigint | number | string | PyList | PyDict;

/** A Python `list`. */
export type PyList = readonly PyValue[];

/** A Python `dict` with string keys, in insertion order. */
export type PyDict = ReadonlyMap<string, PyValue>;

/** True if the value is a Python `dict`. */
export function isPyDict(value: PyValue | undefined): value is PyDict {
  return value instanceof Map;
}

/** True if the value is a Python `list`. */
export function isPyList(value: PyValue | undefined): value is PyList {
  return Array.isArray(value);
}

/** Plain JavaScript data for a JSON document. */
export type PlainJson =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly PlainJson[]
  | PyDict
  | { readonly [key: string]: PlainJson | undefined };

/**
 * Converts plain JavaScript data to a Python value. Integral numbers become `int`; other numbers, and numbers that
 * JavaScript writes with an exponent, become `float`. Objects become dictionaries, without `undefined` members.
 * Python values are returned unchanged.
 */
export function toPyValue(value: PlainJson): PyValue {
  if (typeof value === "number") {
    const isInt = Number.isInteger(value) && Math.abs(value) < 1e21 && !Object.is(value, -0);
    return isInt ? BigInt(value) : value;
  }
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item: PlainJson) => toPyValue(item));
  if (value instanceof Map) return value;
  const dict = new Map<string, PyValue>();
  const members = value as { readonly [key: string]: PlainJson | undefined };
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member !== undefined) dict.set(key, toPyValue(member));
  }
  return dict;
}

/**
 * Converts a Python value to plain JavaScript data: integers become numbers (exact up to 2^53), dictionaries become
 * objects without a prototype. Use it for reading and validation only; to keep Python's text, use
 * `stringifyPythonJson()`.
 */
export function toPlainJson(value: PyValue): PlainJson {
  if (typeof value === "bigint") return Number(value);
  if (isPyList(value)) return value.map(toPlainJson);
  if (isPyDict(value)) {
    const plain: Record<string, PlainJson> = Object.create(null) as Record<string, PlainJson>;
    for (const [key, member] of value) plain[key] = toPlainJson(member);
    return plain;
  }
  return value;
}
