/** Shorter ones are gone through in no time. */
const shortest = 65_536;

/** Places that are looked at before all of them are. */
const sampleCount = 64;

/**
 * Whether a long list has mostly holes, as where a call wrote far behind its end: going through its places one by one
 * would take minutes. One without holes is told by some of its places.
 */
export function isSparse(list: readonly unknown[]): boolean {
  if (list.length < shortest) return false;
  const step = Math.floor(list.length / sampleCount);
  for (let place = 0; place < list.length; place += step) {
    if (!Object.hasOwn(list, place)) return isMostlyHoles(list);
  }
  return false;
}

/** Whether a list has fewer items than holes: each is gone through. */
export function isMostlyHoles(list: readonly unknown[]): boolean {
  return Object.keys(list).length < list.length / 2;
}

/** A list as long, all of it holes. */
export function emptyAs(list: readonly unknown[]): unknown[] {
  const copy: unknown[] = [];
  // Without the last place first, each one further on would be made room for.
  copy.length = list.length;
  return copy;
}

/** Whether a list's member is an item rather than beside them. */
export function isPlaceIn({ length }: readonly unknown[], key: string): boolean {
  const place = Number(key);
  return Number.isInteger(place) && place >= 0 && place < length && String(place) === key;
}
