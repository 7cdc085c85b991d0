import { type PyValue, stringifyPythonJson } from "../../../../python-values/src/index.ts";

/** Writes a value as Python's `json.dumps(value, ensure_ascii=False)`, by which the engines write arguments. */
export function writeJson(value: PyValue): string {
  return stringifyPythonJson(value, { ensureAscii: false });
}
