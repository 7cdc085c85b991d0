import type { PyDict, PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/** A Python value that its holder may change. */
export type MutableValue = null | boolean | bigint | number | string | MutableValue[] | MutableDict;

/** A Python `dict` that its holder may change. */
export type MutableDict = Map<string, MutableValue>;

/** A deep copy, as Python's `copy.deepcopy()` makes one of a JSON document. */
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
