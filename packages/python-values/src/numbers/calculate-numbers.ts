import {
  divideFloats,
  floorDivideFloats,
  powerFloats,
  remainderFloats,
} from "./float-operations.ts";
import {
  checkSize,
  divideInts,
  floorDivideInts,
  powerInts,
  remainderInts,
} from "./int-operations.ts";
import { toFloat } from "./to-float.ts";

/** Python's arithmetic operators on numbers, except `**`: see `raiseNumber()`. */
export type NumberOperator = "+" | "-" | "*" | "/" | "//" | "%";

/**
 * Python's arithmetic on an `int` (a bigint) and a `float` (a number); the result is a float if either side is.
 *
 * @throws PythonError `ZeroDivisionError`; `OverflowError` if an integer is too large to become a float or exceeds
 * the size limit.
 */
export function calculateNumbers(
  left: bigint | number,
  operator: NumberOperator,
  right: bigint | number,
): bigint | number {
  return typeof left === "bigint" && typeof right === "bigint"
    ? calculateInts(left, operator, right)
    : calculateFloats(toFloat(left), operator, toFloat(right));
}

/**
 * Python's `base ** exponent`, or `undefined` if the result is a complex number: for a negative base and a
 * fractional exponent. Throws like `calculateNumbers()`.
 */
export function raiseNumber(
  base: bigint | number,
  exponent: bigint | number,
): bigint | number | undefined {
  return typeof base === "bigint" && typeof exponent === "bigint" && exponent >= 0n
    ? powerInts(base, exponent)
    : powerFloats(toFloat(base), toFloat(exponent));
}

function calculateInts(left: bigint, operator: NumberOperator, right: bigint): bigint | number {
  switch (operator) {
    case "+":
      return checkSize(left + right);
    case "-":
      return checkSize(left - right);
    case "*":
      return checkSize(left * right);
    case "/":
      return divideInts(left, right);
    case "//":
      return floorDivideInts(left, right);
    case "%":
      return remainderInts(left, right);
  }
}

function calculateFloats(left: number, operator: NumberOperator, right: number): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return divideFloats(left, right);
    case "//":
      return floorDivideFloats(left, right);
    case "%":
      return remainderFloats(left, right);
  }
}
