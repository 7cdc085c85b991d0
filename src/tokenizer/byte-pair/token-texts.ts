import { hashTokenText } from "./token-text-reader.ts";

/** Larger ids are not indexed. No vocabulary comes near. */
export const maxId = 2 ** 22;

/**
 * Maximum distance of an entry from its first slot. Published vocabularies need some tens. A file
 * that was made to collide would otherwise take quadratic time.
 */
export const maxProbeCount = 512;

/** The entries of a vocabulary, in the order of the document. */
interface VocabularyEntries {
  /** The token texts in UTF-8, one after the other. */
  readonly bytes: Buffer;
  /** Start of each entry in `bytes`, and the end of the last one. */
  readonly starts: Int32Array;
  readonly ids: Int32Array;
  /** `hashTokenText()` of each entry. */
  readonly hashes: Int32Array;
}

/**
 * A vocabulary's token texts, indexed by text and by id. It stores only bytes and numbers. A `Map`
 * of strings would be ten times as large and as slow to build.
 */
export class TokenTexts {
  readonly #bytes: Buffer;
  readonly #starts: Int32Array;
  readonly #ids: Int32Array;
  /** Entries by hash slot, or -1. */
  readonly #slots: Int32Array;
  /** Entries by id, or -1. */
  readonly #entries: Int32Array;

  /**
   * Builds the index.
   *
   * @param vocabulary - Its ids must be at most `maxId`.
   * @returns `undefined` if an id or a text occurs twice, or if too many texts have the same slot.
   */
  static of(vocabulary: VocabularyEntries): TokenTexts | undefined {
    let largest = -1;
    for (const id of vocabulary.ids) if (id > largest) largest = id;
    const tokenTexts = new TokenTexts(vocabulary, largest + 1);
    return tokenTexts.#fill(vocabulary.hashes) ? tokenTexts : undefined;
  }

  private constructor({ bytes, starts, ids }: VocabularyEntries, idCount: number) {
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
        if (hashes[other] === hash && this.#haveSameText(other, entry)) return false;
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

  #haveSameText(one: number, other: number): boolean {
    const starts = this.#starts;
    return this.hasText(one, this.#bytes, starts[other] as number, starts[other + 1] as number);
  }

  /** Returns the entry with that text, or -1. `hash` is the text's hash. */
  find(bytes: Uint8Array, from: number, to: number, hash: number): number {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = slotOfHash(hash) & mask;
    for (;;) {
      const entry = slots[slot] as number;
      if (entry === -1) return -1;
      if (this.hasText(entry, bytes, from, to)) return entry;
      slot = (slot + 1) & mask;
    }
  }

  /** True if the entry has that text. False for an entry after the last one. */
  hasText(entry: number, bytes: Uint8Array, from: number, to: number): boolean {
    const own = this.#bytes;
    const start = this.#starts[entry] as number;
    // After the last entry, this compares with NaN.
    if ((this.#starts[entry + 1] as number) - start !== to - from) return false;
    for (let at = from, place = start; at < to; at++, place++) {
      if (own[place] !== bytes[at]) return false;
    }
    return true;
  }

  /** Number of entries. */
  get count(): number {
    return this.#ids.length;
  }

  /** Number of bytes of the longest text. */
  get longest(): number {
    let longest = 0;
    let start = 0;
    for (const end of this.#starts) {
      if (end - start > longest) longest = end - start;
      start = end;
    }
    return longest;
  }

  /** True if the ids are all integers from 0 to `count - 1`. */
  get isGapless(): boolean {
    return this.#entries.length === this.#ids.length;
  }

  idOfEntry(entry: number): number {
    return this.#ids[entry] as number;
  }

  /** Returns the id of a token text, or `undefined`. */
  idOf(tokenText: string): number | undefined {
    const bytes = Buffer.from(tokenText);
    const entry = this.find(bytes, 0, bytes.length, hashTokenText(bytes, 0, bytes.length));
    return entry === -1 ? undefined : this.#ids[entry];
  }

  /** Returns the token text of an id, or `undefined`. */
  textOf(id: number): string | undefined {
    const entry = this.#entries[id] ?? -1;
    if (entry === -1) return undefined;
    return this.#bytes.toString("utf8", this.#starts[entry], this.#starts[entry + 1]);
  }
}

function slotOfHash(hash: number): number {
  return hash ^ (hash >>> 15);
}
