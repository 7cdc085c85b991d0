import { PythonError } from "./python-error.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * The items of Python's `for … in value`: a list's items, a dictionary's keys, a string's characters (code points).
 *
 * @throws PythonError `TypeError` for anything else.
 */
export function iterate(value: PyValue): readonly PyValue[] {
  if (isPyList(value)) return value;
  if (isPyDict(value)) return [...value.keys()];
  if (typeof value === "string") return Array.from(value);
  throw new PythonError("TypeError", `'${pythonTypeName(value)}' object is not iterable`);
}

/**
 * Python's `len(value)`; a string's in code points.
 *
 * @throws PythonError `TypeError` for a value without a length.
 */
export function lengthOf(value: PyValue): number {
  if (isPyList(value)) return value.length;
  if (isPyDict(value)) return value.size;
  if (typeof value === "string") return Array.from(value).length;
  throw new PythonError("TypeError", `object of type '${pythonTypeName(value)}' has no len()`);
}
