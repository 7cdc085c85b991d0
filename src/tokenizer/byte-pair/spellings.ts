import { hashSpelling } from "./spelling-reader.ts";

/** Ids beyond it are not looked up: no vocabulary comes near. */
export const maxId = 2 ** 22;

/**
 * How far from its place an entry is put at the most. In published vocabularies it is some tens; a file that was made
 * so that many fall together would have all of them gone through for each.
 */
export const maxProbeCount = 512;

/** What was read of a vocabulary, entry after entry. */
interface SpelledIds {
  /** The spellings' bytes in UTF-8, one after the other. */
  readonly bytes: Buffer;
  /** Where in `bytes` each entry begins, and where the last one ends. */
  readonly starts: Int32Array;
  readonly ids: Int32Array;
  /** `hashSpelling()` of each. */
  readonly hashes: Int32Array;
}

/**
 * A vocabulary's spellings, found by their text and by their id. It keeps bytes and numbers alone: as a `Map` of
 * strings it would be ten times as large, and as slow to make.
 */
export class Spellings {
  readonly #bytes: Buffer;
  readonly #starts: Int32Array;
  readonly #ids: Int32Array;
  /** Entries by their hash; -1 for none. */
  readonly #slots: Int32Array;
  /** Entries by their id; -1 for none. */
  readonly #entries: Int32Array;

  /**
   * @param spelled - No id is above `maxId`.
   * @returns `undefined` where an id or a spelling occurs twice, or too many have their place together.
   */
  static of(spelled: SpelledIds): Spellings | undefined {
    let largest = -1;
    for (const id of spelled.ids) if (id > largest) largest = id;
    const spellings = new Spellings(spelled, largest + 1);
    return spellings.#fill(spelled.hashes) ? spellings : undefined;
  }

  private constructor({ bytes, starts, ids }: SpelledIds, idCount: number) {
    this.#bytes = bytes;
    this.#starts = starts;
    this.#ids = ids;
    let capacity = 1024;
    while (capacity < ids.length * 2) capacity *= 2;
    this.#slots = new Int32Array(capacity).fill(-1);
    this.#entries = new Int32Array(idCount).fill(-1);
  }

  #fill(hashes: Int32Array): boolean {
    const [slots, entries, ids] = [this.#slots, this.#entries, this.#ids];
    const mask = slots.length - 1;
    for (let entry = 0; entry < ids.length; entry++) {
      const hash = hashes[entry] as number;
      let slot = slotOfHash(hash) & mask;
      let probeCount = 0;
      for (let other = slots[slot] as number; other !== -1; other = slots[slot] as number) {
        if (hashes[other] === hash && this.#areAlike(other, entry)) return false;
        if (++probeCount > maxProbeCount) return false;
        slot = (slot + 1) & mask;
      }
      slots[slot] = entry;
      const id = ids[entry] as number;
      if (entries[id] !== -1) return false;
      entries[id] = entry;
    }
    return true;
  }

  #areAlike(one: number, other: number): boolean {
    const starts = this.#starts;
    return this.isSpelled(one, this.#bytes, starts[other] as number, starts[other + 1] as number);
  }

  /** The entry with that spelling, whose hash is `hash`; -1 where there is none. */
  find(bytes: Uint8Array, from: number, to: number, hash: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = slotOfHash(hash) & mask;
    for (;;) {
      const entry = slots[slot] as number;
      if (entry === -1) return -1;
      if (this.isSpelled(entry, bytes, from, to)) return entry;
      slot = (slot + 1) & mask;
    }
  }

  /** Whether the entry is spelled so; there may be no such entry. */
  isSpelled(entry: number, bytes: Uint8Array, from: number, to: number): boolean {
    const own = this.#bytes;
    const start = this.#starts[entry] as number;
    // Behind the last entry there is none, and this compares with NaN.
    if ((this.#starts[entry + 1] as number) - start !== to - from) return false;
    for (let at = from, place = start; at < to; at++, place++) {
      if (own[place] !== bytes[at]) return false;
    }
    return true;
  }

  /** How many there are. */
  get count(): number {
    return this.#ids.length;
  }

  /** How many bytes the longest has. */
  get longest(): number {
    let longest = 0;
    let start = 0;
    for (const end of this.#starts) {
      if (end - start > longest) longest = end - start;
      start = end;
    }
    return longest;
  }

  /** Whether their ids are those from 0 on, without a gap. */
  get isGapless(): boolean {
    return this.#entries.length === this.#ids.length;
  }

  idOfEntry(entry: number): number {
    return this.#ids[entry] as number;
  }

  /** The id of a spelling; `undefined` where there is none. */
  idOf(spelling: string): number | undefined {
    const bytes = Buffer.from(spelling);
    const entry = this.find(bytes, 0, bytes.length, hashSpelling(bytes, 0, bytes.length));
    return entry === -1 ? undefined : this.#ids[entry];
  }

  /** The spelling of an id; `undefined` where there is none. */
  spellingOf(id: number): string | undefined {
    const entry = this.#entries[id] ?? -1;
    if (entry === -1) return undefined;
    return this.#bytes.toString("utf8", this.#starts[entry], this.#starts[entry + 1]);
  }
}

function slotOfHash(hash: number): number {
  return hash ^ (hash >>> 15);
}
