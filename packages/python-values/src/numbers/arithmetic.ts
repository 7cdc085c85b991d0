import { calculateNumbers } from "./calculate-numbers.ts";
import { PythonError } from "../python-error.ts";
import { pythonTypeName } from "../type-name.ts";
import type { PyValue } from "../value.ts";
import { isPyList } from "../value.ts";

/** A Python number. A `bool` counts as 0 or 1, and results are never `bool`. */
export type PyNumber = bigint | number;

/**
 * Python's `left + right` on numbers; the result is a float if either side is.
 *
 * @param operator - The operation's name in the error: `+`, or `+=` for the statement.
 * @throws PythonError `TypeError` for other operands, `OverflowError` if an integer is too large to become a float.
 */
export function add(left: PyValue, right: PyValue, operator = "+"): PyNumber {
  const [a, b] = numbers(left, right, operator);
  return calculateNumbers(a, "+", b);
}

/** Python's `left - right` on numbers. Throws like `add()`. */
export function subtract(left: PyValue, right: PyValue, operator = "-"): PyNumber {
  const [a, b] = numbers(left, right, operator);
  return calculateNumbers(a, "-", b);
}

/** Python's `left * right` with a number on the left. Throws like `add()`. */
export function multiply(left: PyNumber, right: PyValue): PyNumber | string | PyValue[] {
  if (typeof right === "string") return right.repeat(repetitions(left));
  if (isPyList(right)) {
    return Array.from({ length: repetitions(left) }, () => right).flat();
  }
  const [a, b] = numbers(left, right, "*");
  return calculateNumbers(a, "*", b);
}

/**
 * Python's `-value`.
 *
 * @throws PythonError `TypeError` if the value is not a number.
 */
export function negate(value: PyValue): PyNumber {
  const number = asNumber(value);
  if (number === undefined) {
    throw new PythonError("TypeError", `bad operand type for unary -: '${pythonTypeName(value)}'`);
  }
  return -number;
}

/** Python's `abs(value)` of a number. */
export function absolute(value: PyNumber): PyNumber {
  if (typeof value === "number") return Math.abs(value);
  return value < 0n ? -value : value;
}

function repetitions(count: PyNumber): number {
  if (typeof count === "number") {
    throw new PythonError("TypeError", "can't multiply sequence by non-int of type 'float'");
  }
  return count < 0n ? 0 : Number(count);
}

function asNumber(value: PyValue): PyNumber | undefined {
  if (typeof value === "boolean") return value ? 1n : 0n;
  return typeof value === "bigint" || typeof value === "number" ? value : undefined;
}

function numbers(left: PyValue, right: PyValue, operator: string): [PyNumber, PyNumber] {
  const a = asNumber(left);
  const b = asNumber(right);
  if (a === undefined || b === undefined) {
    throw new PythonError(
      "TypeError",
      `unsupported operand type(s) for ${operator}: ` +
        `'${pythonTypeName(left)}' and '${pythonTypeName(right)}'`,
    );
  }
  return [a, b];
}
