/** Returns the ids of the `count` largest values, the largest first. Of equal values, the lower id comes first. */
export function bestIds(values: Float32Array, count: number): number[] {
  const ids: number[] = [];
  for (let id = 0; id < values.length; id++) {
    const value = values[id]!;
    if (ids.length === count && !(value > values[ids[count - 1]!]!)) continue;
    let at = Math.min(ids.length, count - 1);
    for (; at > 0 && value > values[ids[at - 1]!]!; at--) ids[at] = ids[at - 1]!;
    ids[at] = id;
  }
  return ids;
}
