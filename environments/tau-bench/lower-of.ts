import { attributeError } from "../../src/python/attribute-error.ts";
import { pythonLower } from "../../src/python/text/lower.ts";
import type { PyValue } from "../../src/python/value.ts";

/**
 * Python's `value.lower()`.
 *
 * @throws PythonError `AttributeError` if the value is not a string.
 */
export function lowerOf(value: PyValue): string {
  if (typeof value !== "string") throw attributeError(value, "lower");
  return pythonLower(value);
}
