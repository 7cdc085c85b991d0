import { pythonRepr } from "./repr.ts";
import type { PyValue } from "../value.ts";

/**
 * Python's `str()` of a value, which f-strings also print: strings unchanged, other values by `repr()`.
 *
 * @throws like `pythonRepr()`.
 */
export function pythonStr(value: PyValue): string {
  return typeof value === "string" ? value : pythonRepr(value);
}
