import { pythonRepr } from "./repr.ts";
import type { PyValue } from "../value.ts";

/**
 * Python's `str()` of a value, which f-strings print too: strings as they are, the rest by `repr()`.
 *
 * @throws as `pythonRepr()`.
 */
export function pythonStr(value: PyValue): string {
  return typeof value === "string" ? value : pythonRepr(value);
}
