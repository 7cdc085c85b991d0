/** Maximum length of a piece in this table, in UTF-16 units. */
const maxLength = 16;

/** Maximum number of ids of a piece in this table. */
const maxIdCount = 3;

/**
 * Numbers in a slot: four with the piece's characters, one with the number of its ids, and the ids.
 */
const slotSize = 8;

/** Number of slots as a power of two: a quarter of a MiB, which fits the processor's cache. */
const slotBits = 13;

/** The first numbers of the slot of the current piece. */
const key = new Int32Array(4);

/**
 * The ids of short pieces that occurred lately.
 *
 * Each turn looks up dozens of pieces, mostly the same ones. This table needs no string for a piece
 * and reads memory once. Each piece has one slot, and a later piece with the same slot replaces it.
 */
export class ShortPieces {
  #slots: Int32Array | undefined;

  /** Appends the ids of a part of a text. Returns `false` if they are not in the table. */
  append(ids: number[], text: string, from: number, end: number): boolean {
    const slots = this.#slots;
    if (slots === undefined) return false;
    const slot = findSlot(text, from, end);
    if (
      slot === -1 ||
      slots[slot] !== key[0] ||
      slots[slot + 1] !== key[1] ||
      slots[slot + 2] !== key[2] ||
      slots[slot + 3] !== key[3]
    ) {
      return false;
    }
    const last = slot + 4 + (slots[slot + 4] as number);
    for (let place = slot + 5; place <= last; place++) ids.push(slots[place] as number);
    return true;
  }

  /** Stores the ids of a part of a text, if it is short. */
  keep(known: number | readonly number[], text: string, from: number, end: number): void {
    const ids = typeof known === "number" ? [known] : known;
    if (ids.length > maxIdCount) return;
    const slot = findSlot(text, from, end);
    if (slot === -1) return;
    this.#slots ??= new Int32Array(slotSize << slotBits);
    this.#slots.set(key, slot);
    this.#slots[slot + 4] = ids.length;
    this.#slots.set(ids, slot + 5);
  }

  clear(): void {
    this.#slots = undefined;
  }
}

/**
 * Returns the slot of a part of a text and writes its first numbers to `key`. Returns -1 if the
 * part is too long, or has U+0000 or characters above U+00FF. The rest of `key` is U+0000.
 */
function findSlot(text: string, from: number, end: number): number {
  if (end - from > maxLength) return -1;
  key[0] = key[1] = key[2] = key[3] = 0;
  for (let at = from; at < end; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0xff || unit === 0) return -1;
    const place = at - from;
    key[place >> 2]! |= unit << ((place & 3) << 3);
  }
  let hash =
    Math.imul(key[0], 0x9e3779b1) ^
    Math.imul(key[1], 0x85ebca77) ^
    Math.imul(key[2], 0xc2b2ae3d) ^
    Math.imul(key[3], 0x27d4eb2f);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (hash >>> (32 - slotBits)) * slotSize;
}
