import { bitLength, floatToRatio, ratioToFloat } from "./ratio.ts";

/** Binary digits after the point of intermediate values: the result has 53 and is rounded once. */
const precision = 192n;
const one = 1n << precision;

/** Powers with an exact value of at most about this many bits are computed exactly. */
const maxExactBits = 4096;

/**
 * Returns `base ** exponent`, rounded to the nearest float, for a positive base other than 1; infinite or 0 if it
 * is out of range. Python uses the C library, which is as exact in nearly all cases, while JavaScript's own
 * operator often differs in the last digit.
 */
export function positivePower(base: number, exponent: number): number {
  const rough = base ** exponent;
  if (rough === 0 || rough === Infinity) return rough;
  return exactPower(base, exponent) ?? powerByLogarithm(base, exponent);
}

function exactPower(base: number, exponent: number): number | undefined {
  if (!Number.isInteger(exponent)) return undefined;
  const [numerator, denominator] = floatToRatio(base);
  const bits = bitLength(numerator) + bitLength(denominator);
  if (Math.abs(exponent) * bits > maxExactBits) return undefined;
  const times = BigInt(Math.abs(exponent));
  const [top, bottom] = [numerator ** times, denominator ** times];
  return exponent > 0 ? ratioToFloat(top, bottom) : ratioToFloat(bottom, top);
}

/** `exp(exponent * ln(base))` in fixed-point numbers. */
function powerByLogarithm(base: number, exponent: number): number {
  const [numerator, denominator] = floatToRatio(Math.abs(exponent));
  const magnitude = (logarithm(base) * numerator) / denominator;
  const product = exponent < 0 ? -magnitude : magnitude;
  const twos = divideToNearest(product, logarithmOfTwo());
  const fractionPart = exponential(product - twos * logarithmOfTwo());
  const shift = precision - twos;
  return shift >= 0n
    ? ratioToFloat(fractionPart, 1n << shift)
    : ratioToFloat(fractionPart << -shift, 1n);
}

let logTwo: bigint | undefined;

function logarithmOfTwo(): bigint {
  logTwo ??= 2n * inverseHyperbolicTangent(1n, 3n);
  return logTwo;
}

/** The natural logarithm of a positive float. */
function logarithm(value: number): bigint {
  const [numerator, denominator] = floatToRatio(value);
  const twos = bitLength(numerator) - bitLength(denominator);
  const [top, bottom] =
    twos >= 0
      ? [numerator, denominator << BigInt(twos)]
      : [numerator << BigInt(-twos), denominator];
  const rest = 2n * inverseHyperbolicTangent(top - bottom, top + bottom);
  return BigInt(twos) * logarithmOfTwo() + rest;
}

/** The series of `atanh(numerator / denominator)`, for ratios up to about a third. */
function inverseHyperbolicTangent(numerator: bigint, denominator: bigint): bigint {
  const ratio = (numerator * one) / denominator;
  const square = (ratio * ratio) / one;
  let sum = 0n;
  let power = ratio;
  for (let divisor = 1n; power !== 0n; divisor += 2n) {
    sum += power / divisor;
    power = (power * square) / one;
  }
  return sum;
}

/** The series of `exp(value)`, for values below a half. */
function exponential(value: bigint): bigint {
  let sum = 0n;
  let term = one;
  for (let divisor = 1n; term !== 0n; divisor += 1n) {
    sum += term;
    term = (term * value) / (one * divisor);
  }
  return sum;
}

function divideToNearest(value: bigint, divisor: bigint): bigint {
  const doubled = 2n * value + (value < 0n ? -divisor : divisor);
  return doubled / (2n * divisor);
}
