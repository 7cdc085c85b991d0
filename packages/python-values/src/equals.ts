import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * Python's `==`: `1 == 1.0 == True`, integers and floats compare by their exact values, and the order of
 * dictionaries does not matter. NaN equals nothing by itself, but see `isOrEquals()` for containers.
 */
export function pythonEquals(left: PyValue, right: PyValue): boolean {
  if (left === right) return true;
  if (isNumeric(left)) {
    // Loose equality compares a bigint and a number by their mathematical values.
    return isNumeric(right) && asNumber(left) == asNumber(right);
  }
  if (isPyList(left)) {
    return (
      isPyList(right) &&
      left.length === right.length &&
      left.every((item, index) => isOrEquals(item, right[index] as PyValue))
    );
  }
  if (!isPyDict(left) || !isPyDict(right) || left.size !== right.size) return false;
  for (const [key, value] of left) {
    const other = right.get(key);
    if (other === undefined || !isOrEquals(value, other)) return false;
  }
  return true;
}

/**
 * Python's `left is right or left == right`, with which containers compare their elements, `in` searches a list,
 * and `count()` counts. Every `NaN` from `json.loads()` is the same object.
 */
export function isOrEquals(left: PyValue, right: PyValue): boolean {
  return Object.is(left, right) || pythonEquals(left, right);
}

function isNumeric(value: PyValue): value is boolean | bigint | number {
  return typeof value === "boolean" || typeof value === "bigint" || typeof value === "number";
}

function asNumber(value: boolean | bigint | number): bigint | number {
  return typeof value === "boolean" ? Number(value) : value;
}
