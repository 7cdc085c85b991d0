import { attributeError } from "../../packages/python-values/src/attribute-error.ts";
import { pythonLower } from "../../packages/python-values/src/text/lower.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";

/**
 * Python's `value.lower()`.
 *
 * @throws PythonError `AttributeError` if the value is not a string.
 */
export function lowerOf(value: PyValue): string {
  if (typeof value !== "string") throw attributeError(value, "lower");
  return pythonLower(value);
}
