/** Returns the number of trained tokens in a mask. */
export function countTrained(lossMask: readonly (0 | 1)[]): number {
  let count = 0;
  for (const bit of lossMask) count += bit;
  return count;
}
