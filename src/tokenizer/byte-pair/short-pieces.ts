/** Longest piece that is kept here, in UTF-16 units. */
const maxLength = 16;

/** Most ids of a piece that is kept here. */
const maxIdCount = 3;

/** A slot's numbers: four of the piece's characters each, how many ids it has, and these. */
const slotSize = 8;

/** As a power of two: a quarter of a MiB, which stays near the processor. */
const slotBits = 13;

/** The piece that is looked for, as a slot begins. */
const key = new Int32Array(4);

/**
 * The ids of short pieces that occurred lately. Dozens are looked up each turn, mostly the same ones: here that makes
 * no text for a piece, and reads one place of memory. A piece has one slot, which the next one that needs it takes.
 */
export class ShortPieces {
  #slots: Int32Array | undefined;

  /** Adds the ids of a stretch of a text; `false` where they are not known here. */
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

  /** Keeps the ids of a stretch of a text, if it is short. */
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

  forgetAll(): void {
    this.#slots = undefined;
  }
}

/**
 * Where the slot of a stretch begins, which is then in `key`; -1 where it is too long, or has characters of more than
 * a byte. U+0000, which no settled text holds, stands behind its end.
 */
function findSlot(text: string, from: number, end: number): number {
  if (end - from > maxLength) return -1;
  key[0] = key[1] = key[2] = key[3] = 0;
  for (let at = from; at < end; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0xff) return -1;
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
