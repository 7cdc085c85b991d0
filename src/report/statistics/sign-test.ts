/**
 * Computes the exact two-sided sign test: the probability that `winCount + lossCount` fair coin
 * flips split at least as unevenly. Ties are left out. With one attempt per task on each side this
 * is McNemar's exact test.
 * @returns a probability from 0 to 1; 1 without wins and losses.
 */
export function signTest({
  winCount,
  lossCount,
}: {
  readonly winCount: number;
  readonly lossCount: number;
}): number {
  const flips = winCount + lossCount;
  let ways = 0n;
  let waysOfCount = 1n;
  for (let count = 0; count <= Math.min(winCount, lossCount); count++) {
    ways += waysOfCount;
    waysOfCount = (waysOfCount * BigInt(flips - count)) / BigInt(count + 1);
  }
  // The result is twice the lower tail. For an even split, the two tails share the middle.
  return Math.min(1, ratioToPowerOfTwo(ways * 2n, flips));
}

/** Returns `dividend / 2 ** power` without an overflow of intermediate results. */
function ratioToPowerOfTwo(dividend: bigint, power: number): number {
  const bits = dividend.toString(2).length;
  const shift = Math.max(0, bits - 64);
  return Number(dividend >> BigInt(shift)) * 2 ** (shift - power);
}
