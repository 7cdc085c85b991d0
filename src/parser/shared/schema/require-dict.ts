import { PythonError } from "../../../../packages/python-values/src/python-error.ts";
import {
  isPyDict,
  type PyDict,
  type PyValue,
} from "../../../../packages/python-values/src/value.ts";

/**
 * Returns a schema that must be an object.
 *
 * @throws PythonError `AttributeError` for any other value, as `schema.get()` raises in Python.
 */
export function requireDict(value: PyValue): PyDict {
  if (isPyDict(value)) return value;
  throw new PythonError("AttributeError", "a schema is not an object");
}
