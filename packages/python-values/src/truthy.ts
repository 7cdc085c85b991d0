import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/** Python's `bool()` of a value: false for `None`, zero and empty strings, lists and dictionaries. */
export function pythonTruthy(value: PyValue): boolean {
  if (isPyList(value)) return value.length > 0;
  if (isPyDict(value)) return value.size > 0;
  // NaN is true in Python.
  return typeof value === "number" ? value !== 0 : Boolean(value);
}
