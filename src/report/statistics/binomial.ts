/** Returns the number of ways to choose `k` of `n`. 0 if `k` is greater than `n`. */
export function choose(n: number, k: number): bigint {
  if (k < 0 || k > n) return 0n;
  let ways = 1n;
  for (let index = 1; index <= Math.min(k, n - k); index++) {
    ways = (ways * BigInt(n - index + 1)) / BigInt(index);
  }
  return ways;
}

/**
 * Returns `dividend / divisor`, rounded once, as Python divides integers. Neither may be negative.
 */
export function divide(dividend: bigint, divisor: bigint): number {
  const shift = Math.max(0, 64 + bitLength(divisor) - bitLength(dividend));
  const scaled = dividend << BigInt(shift);
  const quotient = scaled / divisor;
  // The lowest bit is set if the division has a remainder, so that near ties differ from ties.
  const sticky = scaled % divisor === 0n ? 0n : 1n;
  return Number((quotient << 1n) | sticky) / 2 ** (shift + 1);
}

function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}
