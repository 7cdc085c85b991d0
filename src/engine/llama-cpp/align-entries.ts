/**
 * Finds the token of each entry, if the entries of some tokens are missing. `result[i]` is the index of the entry of
 * `ids[i]`, or `undefined` if it is missing or ambiguous.
 *
 * Entries are placed once from the front and once from the back. An entry with the same place both times has no other
 * possible place.
 *
 * @returns `undefined` if the entries are not those of some of the tokens, in order.
 */
export function alignEntries(
  ids: readonly number[],
  entryIds: readonly number[],
): readonly (number | undefined)[] | undefined {
  const earliest = findPlaces(ids, entryIds);
  const latest = findPlaces(ids.toReversed(), entryIds.toReversed());
  if (earliest === undefined || latest === undefined) return undefined;
  const result: (number | undefined)[] = ids.map(() => undefined);
  for (const [entryIndex, place] of earliest.entries()) {
    const fromBack = latest[entryIds.length - 1 - entryIndex] ?? 0;
    if (ids.length - 1 - fromBack === place) result[place] = entryIndex;
  }
  return result;
}

/** Returns for each entry the first place after the place of the previous entry. */
function findPlaces(
  ids: readonly number[],
  entryIds: readonly number[],
): readonly number[] | undefined {
  const places: number[] = [];
  let next = 0;
  for (const id of entryIds) {
    const place = ids.indexOf(id, next);
    if (place < 0) return undefined;
    places.push(place);
    next = place + 1;
  }
  return places;
}
