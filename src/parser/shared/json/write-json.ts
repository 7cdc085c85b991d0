import { stringifyPythonJson } from "../../../../packages/python-values/src/json/json-stringify.ts";
import type { PyValue } from "../../../../packages/python-values/src/value.ts";

/** Python's `json.dumps(value, ensure_ascii=False)`, which the engines write arguments with. */
export function writeJson(value: PyValue): string {
  return stringifyPythonJson(value, { ensureAscii: false });
}
