/** Shorter lists are scanned quickly, even if they are sparse. */
const shortest = 65_536;

/** The number of indexes to sample before scanning the complete list. */
const sampleCount = 64;

/**
 * True if a long list has mostly holes, for example because a call wrote far beyond its end. Visiting each index of
 * such a list would take minutes. A sample of indexes recognizes most lists without holes.
 */
export function isSparse(list: readonly unknown[]): boolean {
  if (list.length < shortest) return false;
  const step = Math.floor(list.length / sampleCount);
  for (let place = 0; place < list.length; place += step) {
    if (!Object.hasOwn(list, place)) return isMostlyHoles(list);
  }
  return false;
}

/** True if a list has fewer items than holes. Visits every item. */
export function isMostlyHoles(list: readonly unknown[]): boolean {
  return Object.keys(list).length < list.length / 2;
}

/** A list of the same length with only holes. */
export function emptyAs(list: readonly unknown[]): unknown[] {
  const copy: unknown[] = [];
  // Setting the length first makes the list sparse; otherwise each write beyond the end would allocate the indexes
  // before it.
  copy.length = list.length;
  return copy;
}

/** True if a list's own key is the index of an item. */
export function isPlaceIn({ length }: readonly unknown[], key: string): boolean {
  const place = Number(key);
  return Number.isInteger(place) && place >= 0 && place < length && String(place) === key;
}
