import type { PyValue } from "./value.ts";

/** Names of the Python types that values can have. */
export type PythonTypeName = "NoneType" | "bool" | "int" | "float" | "str" | "list" | "dict";

/** The name of a value's Python type, as error messages print it. Lists and maps may contain anything. */
export function pythonTypeName(
  value: PyValue | readonly unknown[] | ReadonlyMap<unknown, unknown>,
): PythonTypeName {
  if (value === null) return "NoneType";
  if (Array.isArray(value)) return "list";
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
