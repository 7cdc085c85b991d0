import type { PyValue } from "./value.ts";
import { isPyDict, isPyList } from "./value.ts";

/**
 * Python's `==`: `1 == 1.0 == True`, integers and floats compare by their exact values, dictionaries
 * whatever their order. Not a number equals nothing; two containers that share one such object, which
 * Python calls equal, are told apart here.
 */
export function pythonEquals(left: PyValue, right: PyValue): boolean {
  if (left === right) return true;
  if (isNumeric(left)) {
    // Loose equality compares a bigint and a number by their mathematical values.
    // eslint-disable-next-line eqeqeq
    return isNumeric(right) && asNumber(left) == asNumber(right);
  }
  if (isPyList(left)) {
    return (
      isPyList(right) &&
      left.length === right.length &&
      left.every((item, index) => pythonEquals(item, right[index] as PyValue))
    );
  }
  if (!isPyDict(left) || !isPyDict(right) || left.size !== right.size) return false;
  for (const [key, value] of left) {
    const other = right.get(key);
    if (other === undefined || !pythonEquals(value, other)) return false;
  }
  return true;
}

function isNumeric(value: PyValue): value is boolean | bigint | number {
  return typeof value === "boolean" || typeof value === "bigint" || typeof value === "number";
}

function asNumber(value: boolean | bigint | number): bigint | number {
  return typeof value === "boolean" ? Number(value) : value;
}
