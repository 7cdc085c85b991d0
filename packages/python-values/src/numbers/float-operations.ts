import { positivePower } from "./positive-power.ts";
import { PythonError } from "../python-error.ts";

/**
 * Python's `left / right` of floats.
 *
 * @throws PythonError `ZeroDivisionError`.
 */
export function divideFloats(left: number, right: number): number {
  if (right === 0) throw new PythonError("ZeroDivisionError", "float division by zero");
  return left / right;
}

/**
 * Python's `left // right` of floats, computed from the remainder, which is exact.
 *
 * **Source:** CPython 3.11, `Objects/floatobject.c` (`_float_div_mod`).
 *
 * @throws PythonError `ZeroDivisionError`.
 */
export function floorDivideFloats(left: number, right: number): number {
  if (right === 0) throw new PythonError("ZeroDivisionError", "float floor division by zero");
  const remainder = left % right;
  let quotient = (left - remainder) / right;
  if (remainder !== 0 && right < 0 !== remainder < 0) quotient -= 1;
  if (quotient === 0) return left / right < 0 || Object.is(left / right, -0) ? -0 : 0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

/**
 * Python's `left % right` of floats, which has the divisor's sign.
 *
 * **Source:** CPython 3.11, `Objects/floatobject.c` (`float_rem`).
 *
 * @throws PythonError `ZeroDivisionError`.
 */
export function remainderFloats(left: number, right: number): number {
  if (right === 0) throw new PythonError("ZeroDivisionError", "float modulo");
  const remainder = left % right;
  if (remainder === 0) return right < 0 ? -0 : 0;
  return remainder < 0 === right < 0 ? remainder : remainder + right;
}

/**
 * Python's `base ** exponent` of floats, or `undefined` if the result is a complex number: for a negative base and
 * a fractional exponent.
 *
 * **Source:** CPython 3.11, `Objects/floatobject.c` (`float_pow`).
 *
 * @throws PythonError `ZeroDivisionError`, `OverflowError`.
 */
export function powerFloats(base: number, exponent: number): number | undefined {
  if (exponent === 0 || base === 1) return 1;
  if (Number.isNaN(base) || Number.isNaN(exponent)) return Number.NaN;
  // JavaScript returns NaN for a base of 1 or -1 with an infinite exponent.
  if (Math.abs(base) === 1 && !Number.isFinite(exponent)) return 1;
  if (!Number.isFinite(base) || !Number.isFinite(exponent)) return base ** exponent;
  if (base === 0) {
    if (exponent < 0) {
      throw new PythonError("ZeroDivisionError", "0.0 cannot be raised to a negative power");
    }
    return base ** exponent;
  }
  if (base < 0 && !Number.isInteger(exponent)) return undefined;
  const magnitude = positivePower(Math.abs(base), exponent);
  if (magnitude === Infinity) {
    throw new PythonError("OverflowError", "(34, 'Numerical result out of range')");
  }
  return base < 0 && exponent % 2 !== 0 ? -magnitude : magnitude;
}
