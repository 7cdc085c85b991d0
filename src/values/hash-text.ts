/**
 * Returns a well-spread 32-bit hash of a text's UTF-16 units: FNV-1a, then `spreadBits()`. Without the latter,
 * texts with the same ending would be ranked alike.
 *
 * **Source:** FNV-1a of draft-eastlake-fnv.
 */
export function hashText(text: string): number {
  let state = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    state = Math.imul(state ^ text.charCodeAt(index), 0x01000193);
  }
  return spreadBits(state);
}

/** Spreads 32 bits over 32 bits. **Source:** fmix32 of aappleby/smhasher, src/MurmurHash3.cpp. */
export function spreadBits(value: number): number {
  let state = value;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
