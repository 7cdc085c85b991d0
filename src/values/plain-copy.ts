import { wellFormedJson } from "../text/well-formed.ts";

/** A JSON-able value once more, as JSON has it: nobody else writes into it. */
export function plainCopy<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null) return value;
  return JSON.parse(JSON.stringify(value) ?? "null") as Value;
}

/** The same with U+FFFD in the place of each half of a surrogate pair, which no UTF-8 file can hold. */
export function wellFormedCopy<Value>(value: Value): Value {
  return JSON.parse(wellFormedJson(JSON.stringify(value) ?? "null")) as Value;
}
