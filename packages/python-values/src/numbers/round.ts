import { PythonError } from "../python-error.ts";
import { floatToRatio } from "./ratio.ts";

/**
 * Python's `round(value, digits)`: exact on the number's true decimal expansion, ties to even, and of the operand's
 * own type. `0.125` gives `0.12`; `2.675`, which is stored slightly lower, `2.67`.
 *
 * **Source:** CPython 3.11, `Objects/floatobject.c` and `Objects/longobject.c`.
 *
 * @throws PythonError `OverflowError` if the rounded float is out of range.
 */
export function roundHalfEven<N extends bigint | number>(value: N, digits: number): N;
export function roundHalfEven(value: bigint | number, digits: number): bigint | number {
  return typeof value === "bigint" ? roundInt(value, digits) : roundFloat(value, digits);
}

function roundInt(value: bigint, digits: number): bigint {
  if (digits >= 0) return value;
  const unit = 10n ** BigInt(-digits);
  return divideHalfEven(value, unit) * unit;
}

function roundFloat(value: number, digits: number): number {
  // Beyond these bounds every float is a multiple of the unit, or rounds to zero.
  if (!Number.isFinite(value) || value === 0 || digits > 323) return value;
  if (digits < -308) return value < 0 ? -0 : 0;
  const [numerator, denominator] = floatToRatio(Math.abs(value));
  const scale = 10n ** BigInt(Math.abs(digits));
  const units =
    digits >= 0
      ? divideHalfEven(numerator * scale, denominator)
      : divideHalfEven(numerator, denominator * scale);
  const rounded = Number(`${units}e${-digits}`);
  if (!Number.isFinite(rounded)) {
    throw new PythonError("OverflowError", "rounded value too large to represent");
  }
  return value < 0 ? -rounded : rounded;
}

/** The quotient of `numerator` and a positive `denominator`, rounded to the nearest, ties to even. */
function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const negative = numerator < 0n;
  const magnitude = negative ? -numerator : numerator;
  const quotient = magnitude / denominator;
  const twice = 2n * (magnitude % denominator);
  const up = twice > denominator || (twice === denominator && quotient % 2n === 1n);
  const rounded = up ? quotient + 1n : quotient;
  return negative ? -rounded : rounded;
}
