import { assertHashable } from "./hashable.ts";
import type { MutableValue } from "./mutable-value.ts";
import { PythonError } from "./python-error.ts";
import { pythonRepr } from "./text/repr.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * Python's `container[key]`.
 *
 * @throws PythonError `KeyError`, `IndexError` or `TypeError`, with CPython 3.11's texts.
 */
export function getItem(container: MutableValue, key: PyValue): MutableValue;
export function getItem(container: PyValue, key: PyValue): PyValue;
export function getItem(container: PyValue, key: PyValue): PyValue {
  if (isPyDict(container)) {
    assertHashable(key);
    const value = typeof key === "string" ? container.get(key) : undefined;
    if (value === undefined) throw keyError(key);
    return value;
  }
  if (isPyList(container)) return listItem(container, key);
  if (typeof container === "string") return character(container, key);
  throw new PythonError("TypeError", `'${pythonTypeName(container)}' object is not subscriptable`);
}

/** The `KeyError` of a missing key, with the key's `repr()` as text. */
export function keyError(key: PyValue): PythonError {
  return new PythonError("KeyError", pythonRepr(key));
}

function listItem(list: readonly PyValue[], key: PyValue): PyValue {
  if (typeof key !== "bigint" && typeof key !== "boolean") {
    throw new PythonError(
      "TypeError",
      `list indices must be integers or slices, not ${pythonTypeName(key)}`,
    );
  }
  const item = list.at(Number(key));
  if (item === undefined) throw new PythonError("IndexError", "list index out of range");
  return item;
}

function character(text: string, key: PyValue): string {
  if (typeof key !== "bigint" && typeof key !== "boolean") {
    throw new PythonError(
      "TypeError",
      `string indices must be integers, not '${pythonTypeName(key)}'`,
    );
  }
  const item = Array.from(text).at(Number(key));
  if (item === undefined) throw new PythonError("IndexError", "string index out of range");
  return item;
}
