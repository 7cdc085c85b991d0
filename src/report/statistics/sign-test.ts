/**
 * The exact two-sided sign test: how likely it is that of `winCount + lossCount` fair coin flips at
 * least as many as here, or more, fall to one side. Ties are left out. With one attempt a task on
 * each side this is McNemar's exact test.
 *
 * @returns a probability from 0 to 1; 1 where there are neither wins nor losses.
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
  // Twice the lower tail; where both sides are even the two tails share the middle.
  return Math.min(1, ratioToPowerOfTwo(ways * 2n, flips));
}

/** `dividend / 2 ** power`, without leaving the range of a number on the way. */
function ratioToPowerOfTwo(dividend: bigint, power: number): number {
  const bits = dividend.toString(2).length;
  const shift = Math.max(0, bits - 64);
  return Number(dividend >> BigInt(shift)) * 2 ** (shift - power);
}
