import { compareCodePoints } from "./text/compare-code-points.ts";
import { isOrEquals } from "./equals.ts";
import { PythonError } from "./python-error.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyList, PyValue } from "./value.ts";
import { isPyList } from "./value.ts";

/**
 * Python's `left < right`: numbers by their exact values, strings by code points, lists by their first difference.
 *
 * @throws PythonError `TypeError` for other pairs.
 */
export function lessThan(left: PyValue, right: PyValue): boolean {
  const a = comparable(left);
  const b = comparable(right);
  if (a !== undefined && b !== undefined) return a < b;
  if (typeof left === "string" && typeof right === "string") {
    return compareCodePoints(left, right) < 0;
  }
  if (isPyList(left) && isPyList(right)) return listLessThan(left, right);
  throw new PythonError(
    "TypeError",
    `'<' not supported between instances of '${pythonTypeName(left)}' ` +
      `and '${pythonTypeName(right)}'`,
  );
}

function comparable(value: PyValue): bigint | number | undefined {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "bigint" || typeof value === "number" ? value : undefined;
}

function listLessThan(left: PyList, right: PyList): boolean {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const a = left[index] as PyValue;
    const b = right[index] as PyValue;
    if (!isOrEquals(a, b)) return lessThan(a, b);
  }
  return left.length < right.length;
}
