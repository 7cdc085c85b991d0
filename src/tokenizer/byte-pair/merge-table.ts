import { skipSpace } from "../../json/json-members.ts";
import { hashSpelling, SpellingReader } from "./spelling-reader.ts";
import { maxProbeCount, type Spellings } from "./spellings.ts";

const comma = 0x2c;
const openList = 0x5b;
const closeList = 0x5d;

/** A model's merges, by their ids. */
export interface MergeTable {
  /** Left, right and merged id of each merge, in the order of their ranks. */
  readonly ids: Int32Array;
  /** The rank of each pair, where it is looked for first or behind that; -1 for none. */
  readonly slots: Int32Array;
}

/** The rank of a pair's merge; -1 where it has none. */
export function rankOf({ ids, slots }: MergeTable, left: number, right: number): number {
  return slots[slotOf(ids, slots, left, right)] as number;
}

/** The slot where a pair is looked for first. */
function firstSlotOf(slots: Int32Array, left: number, right: number): number {
  const mixed = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) & (slots.length - 1);
}

/** The slot of a pair, or the free one where it would be. */
function slotOf(ids: Int32Array, slots: Int32Array, left: number, right: number): number {
  const mask = slots.length - 1;
  let slot = firstSlotOf(slots, left, right);
  for (;;) {
    const rank = slots[slot] as number;
    if (rank === -1 || (ids[rank * 3] === left && ids[rank * 3 + 1] === right)) return slot;
    slot = (slot + 1) & mask;
  }
}

/** A model's merges that were read. */
export interface MergesPart {
  /** The place behind them. */
  readonly end: number;
  readonly table: MergeTable;
}

/**
 * Goes through the JSON list of merges that stands at a place of the document: lists of two spellings, or texts
 * that hold both.
 *
 * @returns `undefined` where there is none, it merges what the vocabulary does not hold, or too many pairs have
 *   their place together.
 */
export function readMergesPart(
  bytes: Buffer,
  start: number,
  spellings: Spellings,
): MergesPart | undefined {
  const reader = new MergeReader(bytes, start, spellings);
  const table = reader.readAll() ? reader.table() : undefined;
  return table && { end: reader.at, table };
}

/** Of a text that begins so the library makes no merge. */
const comment = Buffer.from("#version");

class MergeReader {
  readonly #bytes: Buffer;
  readonly #spellings: Spellings;
  readonly #reader: SpellingReader;
  /** Left, right and merged id of each merge, in the order of their ranks. */
  readonly #ids: Int32Array;
  #count = 0;
  /** The entry of what was merged last: vocabularies mostly have them in the order of the merges. */
  #mergedEntry = -1;
  /** Where the document is read. */
  at: number;

  constructor(bytes: Buffer, start: number, spellings: Spellings) {
    this.#bytes = bytes;
    this.#spellings = spellings;
    this.#reader = new SpellingReader(bytes, start);
    // The shortest merge, `"a b",`, has six bytes.
    this.#ids = new Int32Array(Math.ceil((bytes.length - start) / 6) * 3);
    this.at = start;
  }

  /** Whether all merges were read, up to the end of their list: they are of one kind. */
  readAll(): boolean {
    if (!this.#takes(openList)) return false;
    if (this.#takes(closeList)) return true;
    let areLists: boolean | undefined;
    for (;;) {
      const isList = this.#takes(openList);
      areLists ??= isList;
      if (isList !== areLists || !(isList ? this.#readList() : this.#readText())) return false;
      if (this.#takes(closeList)) return true;
      if (!this.#takes(comma)) return false;
    }
  }

  /** `undefined` where a pair would be too far from its place. */
  table(): MergeTable | undefined {
    const ids = this.#ids.slice(0, this.#count * 3);
    let capacity = 1024;
    while (capacity < this.#count * 2) capacity *= 2;
    const slots = new Int32Array(capacity).fill(-1);
    for (let rank = 0; rank < this.#count; rank++) {
      const [left, right] = [ids[rank * 3] as number, ids[rank * 3 + 1] as number];
      const slot = slotOf(ids, slots, left, right);
      const probeCount = (slot - firstSlotOf(slots, left, right)) & (capacity - 1);
      if (probeCount > maxProbeCount) return undefined;
      // Of a pair that occurs twice the library takes the last.
      slots[slot] = rank;
    }
    return { ids, slots };
  }

  #readList(): boolean {
    const reader = this.#reader;
    reader.end = 0;
    if (!this.#reads() || !this.#takes(comma)) return false;
    const middle = reader.end;
    const leftHash = reader.hash;
    return this.#reads() && this.#takes(closeList) && this.#add(middle, leftHash);
  }

  #reads(): boolean {
    this.#reader.at = skipSpace(this.#bytes, this.at);
    const isRead = this.#reader.read();
    this.at = this.#reader.at;
    return isRead;
  }

  #readText(): boolean {
    const reader = this.#reader;
    reader.end = 0;
    reader.at = skipSpace(this.#bytes, this.at);
    if (!reader.readLeft()) return false;
    const middle = reader.end;
    const leftHash = reader.hash;
    if (!reader.readRight()) return false;
    this.at = reader.at;
    return !isComment(reader.copied.subarray(0, reader.end)) && this.#add(middle, leftHash);
  }

  /** Adds the merge whose spellings were read. */
  #add(middle: number, leftHash: number): boolean {
    const { copied, end, hash } = this.#reader;
    const spellings = this.#spellings;
    const left = spellings.find(copied, 0, middle, leftHash);
    const right = spellings.find(copied, middle, end, hash);
    let merged = this.#mergedEntry + 1;
    if (!spellings.isSpelled(merged, copied, 0, end)) {
      merged = spellings.find(copied, 0, end, hashSpelling(copied, 0, end));
    }
    if (left === -1 || right === -1 || merged === -1) return false;
    this.#mergedEntry = merged;
    const place = this.#count++ * 3;
    this.#ids[place] = spellings.idOfEntry(left);
    this.#ids[place + 1] = spellings.idOfEntry(right);
    this.#ids[place + 2] = spellings.idOfEntry(merged);
    return true;
  }

  /** Goes over white space, and over a byte if it is the next. */
  #takes(byte: number): boolean {
    this.at = skipSpace(this.#bytes, this.at);
    if (this.#bytes[this.at] !== byte) return false;
    this.at += 1;
    return true;
  }
}

function isComment(spelled: Buffer): boolean {
  return spelled.subarray(0, comment.length).equals(comment);
}
