import {
  isPyDict,
  type PyDict,
  PythonError,
  type PyValue,
} from "../../../../python-values/src/index.ts";

/**
 * Returns a schema that must be an object.
 *
 * @throws PythonError `AttributeError` for any other value, as `schema.get()` raises in Python.
 */
export function requireDict(value: PyValue): PyDict {
  if (isPyDict(value)) return value;
  throw new PythonError("AttributeError", "a schema is not an object");
}
