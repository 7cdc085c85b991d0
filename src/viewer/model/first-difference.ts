/** Returns the first index at which two lists of ids differ, or `undefined` if they are equal. */
export function firstDifference(left: Int32Array, right: Int32Array): number | undefined {
  const shorter = Math.min(left.length, right.length);
  for (let index = 0; index < shorter; index++) {
    if (left[index] !== right[index]) return index;
  }
  return left.length === right.length ? undefined : shorter;
}
