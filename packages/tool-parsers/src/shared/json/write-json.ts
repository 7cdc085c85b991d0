import { type PyValue, stringifyPythonJson } from "../../../../python-values/src/index.ts";

/** Python's `json.dumps(value, ensure_ascii=False)`, which the engines write arguments with. */
export function writeJson(value: PyValue): string {
  return stringifyPythonJson(value, { ensureAscii: false });
}
