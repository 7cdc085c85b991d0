import type { PyDict, PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/** A mutable Python value. */
export type MutableValue = null | boolean | bigint | number | string | MutableValue[] | MutableDict;

/** A mutable Python `dict`. */
export type MutableDict = Map<string, MutableValue>;

/** A deep copy, like Python's `copy.deepcopy()` of a JSON document. */
export function copyValue(value: PyValue): MutableValue {
  if (isPyList(value)) return value.map(copyValue);
  return isPyDict(value) ? copyDict(value) : value;
}

/** A deep copy of a dictionary. */
export function copyDict(dict: PyDict): MutableDict {
  const copy: MutableDict = new Map();
  for (const [key, member] of dict) copy.set(key, copyValue(member));
  return copy;
}
