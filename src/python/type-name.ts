import type { PyValue } from "./value.ts";
import { isPyList } from "./value.ts";

/** Names of the Python types that values can have. */
export type PythonTypeName = "NoneType" | "bool" | "int" | "float" | "str" | "list" | "dict";

/** The name of a value's Python type, as error messages print it. */
export function pythonTypeName(value: PyValue): PythonTypeName {
  if (value === null) return "NoneType";
  if (isPyList(value)) return "list";
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "bigint":
      return "int";
    case "number":
      return "float";
    case "string":
      return "str";
    default:
      return "dict";
  }
}
