import { wellFormedJson } from "../text/well-formed.ts";

/** Returns a JSON copy of a value, to which no other code has a reference. */
export function plainCopy<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  return JSON.parse(JSON.stringify(value) ?? "null") as Value;
}

/**
 * Returns a JSON copy of a value, like `plainCopy()`, with U+FFFD for each lone surrogate, which
 * UTF-8 files cannot represent.
 */
export function wellFormedCopy<Value>(value: Value): Value {
  return JSON.parse(wellFormedJson(JSON.stringify(value) ?? "null")) as Value;
}
