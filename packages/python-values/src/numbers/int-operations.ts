import { PythonError } from "../python-error.ts";
import { bitLength, ratioToFloat } from "./ratio.ts";

/** The most bits of an integer, far beyond the 1,024 that still become a float. */
const maxBits = 65_536;
/** The smallest integer of more bits. */
const tooLong = 1n << BigInt(maxBits);
/** Computed once, since negating an integer copies it, here 8 KiB. */
const tooLow = -tooLong;

/**
 * Python's `left / right` of integers: the float nearest to the quotient.
 *
 * @throws PythonError `ZeroDivisionError`, `OverflowError`.
 */
export function divideInts(left: bigint, right: bigint): number {
  if (right === 0n) throw new PythonError("ZeroDivisionError", "division by zero");
  if (left === 0n) return right < 0n ? -0 : 0;
  const magnitude = ratioToFloat(abs(left), abs(right));
  if (magnitude === Infinity) {
    throw new PythonError("OverflowError", "integer division result too large for a float");
  }
  return left < 0n !== right < 0n ? -magnitude : magnitude;
}

/**
 * Python's `left // right` of integers: rounded towards minus infinity.
 *
 * @throws PythonError `ZeroDivisionError`.
 */
export function floorDivideInts(left: bigint, right: bigint): bigint {
  if (right === 0n) {
    throw new PythonError("ZeroDivisionError", "integer division or modulo by zero");
  }
  const quotient = left / right;
  return left % right !== 0n && left < 0n !== right < 0n ? quotient - 1n : quotient;
}

/**
 * Python's `left % right` of integers, which has the divisor's sign.
 *
 * @throws PythonError `ZeroDivisionError`.
 */
export function remainderInts(left: bigint, right: bigint): bigint {
  if (right === 0n) throw new PythonError("ZeroDivisionError", "integer modulo by zero");
  const remainder = left % right;
  return remainder !== 0n && remainder < 0n !== right < 0n ? remainder + right : remainder;
}

/**
 * Python's `base ** exponent` of integers, for an exponent of at least 0.
 *
 * @throws PythonError like `checkSize()`.
 */
export function powerInts(base: bigint, exponent: bigint): bigint {
  if (base === 0n || abs(base) === 1n) return base ** (exponent === 0n ? 0n : 2n - (exponent % 2n));
  if (BigInt(bitLength(abs(base)) - 1) * exponent > BigInt(maxBits)) throw tooLarge();
  return checkSize(base ** exponent);
}

/**
 * Returns the integer unless it exceeds the size limit. Python would continue, for minutes or until memory ends. An
 * integer of this size cannot become a float, so that error is raised.
 *
 * @throws PythonError `OverflowError`.
 */
export function checkSize(value: bigint): bigint {
  if (value >= tooLong || value <= tooLow) throw tooLarge();
  return value;
}

function tooLarge(): PythonError {
  return new PythonError("OverflowError", "int too large to convert to float");
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}
