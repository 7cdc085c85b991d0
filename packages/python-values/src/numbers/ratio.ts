/** Bits of a float's mantissa, the implied one included. */
const mantissaBits = 53;
/** The exponent of the smallest positive float. */
const minExponent = -1074;

/**
 * Returns the float nearest to `numerator / denominator`, ties to even; infinite if it is out of range. Both
 * arguments are positive.
 */
export function ratioToFloat(numerator: bigint, denominator: bigint): number {
  const exponent = Math.max(
    bitLength(numerator) - bitLength(denominator) - mantissaBits,
    minExponent,
  );
  // The quotient has 53 or 54 bits, or fewer if the result is subnormal. With 54 bits the exponent is at least one
  // too low, so that the only rounding happens below.
  const [scaled, divisor] =
    exponent >= 0
      ? [numerator, denominator << BigInt(exponent)]
      : [numerator << BigInt(-exponent), denominator];
  const quotient = scaled / divisor;
  const remainder = scaled % divisor;
  return roundedQuotient(quotient, { exponent, remainder, divisor });
}

function roundedQuotient(
  quotient: bigint,
  { exponent, remainder, divisor }: { exponent: number; remainder: bigint; divisor: bigint },
): number {
  const excess = Math.max(bitLength(quotient) - mantissaBits, 0);
  const unit = 1n << BigInt(excess);
  const kept = quotient / unit;
  // Twice the remainder that is cut off, and the divisor, on a common scale.
  const cut = 2n * ((quotient % unit) * divisor + remainder);
  const whole = unit * divisor;
  const up = cut > whole || (cut === whole && kept % 2n === 1n);
  return scale(Number(up ? kept + 1n : kept), exponent + excess);
}

/** `value * 2 ** exponent`, in steps that are each exact. */
function scale(value: number, exponent: number): number {
  let scaled = value;
  let rest = exponent;
  while (rest > 1000) {
    scaled *= 2 ** 1000;
    rest -= 1000;
  }
  while (rest < -1000) {
    // The mantissa is short enough for every step but the last to be exact.
    const step = Math.max(rest, -1000);
    scaled *= 2 ** step;
    rest -= step;
  }
  return scaled * 2 ** rest;
}

/** Number of binary digits of a non-negative integer; 0 has none. */
export function bitLength(value: bigint): number {
  if (value === 0n) return 0;
  const hex = value.toString(16);
  return (hex.length - 1) * 4 + (32 - Math.clz32(Number.parseInt(hex.slice(0, 1), 16)));
}

/** A positive finite float as its exact ratio in lowest terms; the denominator is a power of two. */
export function floatToRatio(value: number): [numerator: bigint, denominator: bigint] {
  let mantissa = value;
  let exponent = 0n;
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    exponent += 1n;
  }
  return [BigInt(mantissa), 1n << exponent];
}
