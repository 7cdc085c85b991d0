import { stringifyPythonJson } from "../../../python/json/json-stringify.ts";
import type { PyValue } from "../../../python/value.ts";

/** Python's `json.dumps(value, ensure_ascii=False)`, which the engines write arguments with. */
export function writeJson(value: PyValue): string {
  return stringifyPythonJson(value, { ensureAscii: false });
}
