import { PythonError } from "./python-error.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";

/** The `AttributeError` of a method that the value's type does not have. */
export function attributeError(value: PyValue, name: string): PythonError {
  return new PythonError(
    "AttributeError",
    `'${pythonTypeName(value)}' object has no attribute '${name}'`,
  );
}
