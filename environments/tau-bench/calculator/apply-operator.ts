import {
  calculateNumbers,
  raiseNumber,
} from "../../../packages/python-values/src/numbers/calculate-numbers.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { toFloat } from "../../../packages/python-values/src/numbers/to-float.ts";
import { complex, divideComplex, multiplyComplex, powerComplex } from "./complex.ts";
import type { BinaryOperator } from "./expression.ts";
import type { Complex, Operand } from "./operand.ts";
import { operandType } from "./operand.ts";

/** CPython's largest sequence index. */
const maxIndex = 2n ** 63n - 1n;

/**
 * Python's binary operators on the values of expressions.
 *
 * @throws PythonError like Python: `TypeError`, `ZeroDivisionError`, `OverflowError`.
 */
export function applyOperator(operator: BinaryOperator, left: Operand, right: Operand): Operand {
  if (isNumber(left) && isNumber(right)) {
    if (isComplex(left) || isComplex(right)) return onComplex(operator, left, right);
    if (operator !== "**") return calculateNumbers(left, operator, right);
    return raiseNumber(left, right) ?? onComplex(operator, left, right);
  }
  if (operator === "*" && (isTuple(left) || isTuple(right))) return repeatTuple(left, right);
  if (operator === "+" && isTuple(left)) return concatenate(left, right);
  throw unsupported(operator, left, right);
}

/**
 * Python's signs.
 *
 * @throws PythonError `TypeError` if the value is not a number.
 */
export function applySign(sign: "+" | "-", value: Operand): Operand {
  if (!isNumber(value)) {
    throw new PythonError(
      "TypeError",
      `bad operand type for unary ${sign}: '${operandType(value)}'`,
    );
  }
  if (sign === "+") return value;
  return isComplex(value) ? complex(-value.real, -value.imaginary) : -value;
}

function onComplex(
  operator: BinaryOperator,
  left: bigint | number | Complex,
  right: bigint | number | Complex,
): Operand {
  if (operator === "//") throw unsupported(operator, left, right);
  const a = toComplex(left);
  const b = toComplex(right);
  switch (operator) {
    case "+":
      return complex(a.real + b.real, a.imaginary + b.imaginary);
    case "-":
      return complex(a.real - b.real, a.imaginary - b.imaginary);
    case "*":
      return multiplyComplex(a, b);
    case "/":
      return divideComplex(a, b);
    case "**":
      return powerComplex(a, b);
  }
}

function toComplex(value: bigint | number | Complex): Complex {
  return isComplex(value) ? value : complex(toFloat(value), 0);
}

function repeatTuple(left: Operand, right: Operand): Operand {
  const [tuple, count] = isTuple(left) ? [left, right] : [right, left];
  if (typeof count !== "bigint") {
    throw new PythonError(
      "TypeError",
      `can't multiply sequence by non-int of type '${operandType(count)}'`,
    );
  }
  if (count > maxIndex || count < -maxIndex - 1n) {
    throw new PythonError("OverflowError", "cannot fit 'int' into an index-sized integer");
  }
  return tuple;
}

function concatenate(left: Operand, right: Operand): Operand {
  if (isTuple(right)) return left;
  throw new PythonError(
    "TypeError",
    `can only concatenate tuple (not "${operandType(right)}") to tuple`,
  );
}

function unsupported(operator: BinaryOperator, left: Operand, right: Operand): PythonError {
  const name = operator === "**" ? "** or pow()" : operator;
  return new PythonError(
    "TypeError",
    `unsupported operand type(s) for ${name}: '${operandType(left)}' and '${operandType(right)}'`,
  );
}

function isNumber(value: Operand): value is bigint | number | Complex {
  return typeof value !== "object" || value.type === "complex";
}

function isComplex(value: Operand): value is Complex {
  return typeof value === "object" && value.type === "complex";
}

function isTuple(value: Operand): boolean {
  return typeof value === "object" && value.type === "tuple";
}
