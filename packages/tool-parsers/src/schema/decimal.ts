/** A number as `digits · 10^exponent`. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/**
 * True if a number is an integral multiple of a step, computed on decimal digits: 19.99 is a multiple of 0.01,
 * though not in binary fractions.
 */
export function isMultipleOf(value: bigint | number, step: bigint | number): boolean {
  const [left, right] = [toDecimal(value), toDecimal(step)];
  if (left === undefined || right === undefined || right.digits === 0n) return false;
  if (left.digits === 0n) return true;
  const exponent = Math.min(left.exponent, right.exponent);
  return scale(left, exponent) % scale(right, exponent) === 0n;
}

function scale({ digits, exponent }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(exponent - to);
}

/** Converts a number to a decimal. Returns `undefined` for infinities and NaN. */
function toDecimal(value: bigint | number): Decimal | undefined {
  if (typeof value === "bigint") return { digits: value, exponent: 0 };
  if (!Number.isFinite(value)) return undefined;
  const [mantissa = "", power = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}
