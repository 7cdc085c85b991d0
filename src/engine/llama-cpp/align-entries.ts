/**
 * Finds which token each entry belongs to, where entries of some tokens are missing: `result[i]` is
 * the index of the entry of `ids[i]`, and `undefined` where it is missing or might be another's.
 * `undefined` as a whole where the entries are not those of some of the tokens in order.
 *
 * An entry whose place is the same when entries are given out from the front and from the back has
 * no other place.
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

/** The first place for each entry behind that of the entry before. */
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
