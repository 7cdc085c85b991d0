/** A number as `digits · 10^exponent`. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/**
 * Tells if a number is a whole multiple of a step, by the decimal digits that both are written with:
 * 19.99 is a multiple of 0.01, which binary fractions deny.
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

/** `undefined` for infinities and NaN. */
function toDecimal(value: bigint | number): Decimal | undefined {
  if (typeof value === "bigint") return { digits: value, exponent: 0 };
  if (!Number.isFinite(value)) return undefined;
  const [mantissa = "", power = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}
