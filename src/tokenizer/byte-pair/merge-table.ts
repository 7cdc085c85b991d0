import { skipSpace } from "../../json/json-members.ts";
import { hashTokenText, TokenTextReader } from "./token-text-reader.ts";
import { maxProbeCount, type TokenTexts } from "./token-texts.ts";

const comma = 0x2c;
const openList = 0x5b;
const closeList = 0x5d;

/** A model's merges by the ids of their pairs: a hash table with linear probing. */
export interface MergeTable {
  /** Left, right and merged id of each merge, in the order of their ranks. */
  readonly ids: Int32Array;
  /** The ranks by hash slot, or -1 for an empty slot. */
  readonly slots: Int32Array;
}

/** Returns the rank of a pair's merge, or -1. */
export function rankOf({ ids, slots }: MergeTable, left: number, right: number): number {
  return slots[slotOf(ids, slots, left, right)] as number;
}

/** Returns the first slot of a pair's probe sequence. */
function firstSlotOf(slots: Int32Array, left: number, right: number): number {
  const mixed = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) & (slots.length - 1);
}

/** Returns the slot of a pair, or the empty slot for it. */
function slotOf(ids: Int32Array, slots: Int32Array, left: number, right: number): number {
  const mask = slots.length - 1;
  let slot = firstSlotOf(slots, left, right);
  for (;;) {
    const rank = slots[slot] as number;
    if (rank === -1 || (ids[rank * 3] === left && ids[rank * 3 + 1] === right)) return slot;
    slot = (slot + 1) & mask;
  }
}

/** The merges of a document. */
export interface MergesPart {
  /** The position after the list of merges. */
  readonly end: number;
  readonly table: MergeTable;
}

/**
 * Reads the JSON list of merges at a position of the document. Its items are lists of two token
 * texts, or texts that contain both.
 *
 * @returns `undefined` if there is no list, if a merge is not of vocabulary entries, or if too many
 *   pairs have the same slot.
 */
export function readMergesPart(
  bytes: Buffer,
  start: number,
  tokenTexts: TokenTexts,
): MergesPart | undefined {
  const reader = new MergeReader(bytes, start, tokenTexts);
  const table = reader.readAll() ? reader.table() : undefined;
  return table && { end: reader.at, table };
}

/** The library ignores a text that starts with this. */
const comment = Buffer.from("#version");

class MergeReader {
  readonly #bytes: Buffer;
  readonly #tokenTexts: TokenTexts;
  readonly #reader: TokenTextReader;
  /** Left, right and merged id of each merge, in the order of their ranks. */
  readonly #ids: Int32Array;
  #count = 0;
  /**
   * The entry of the last merged token. Vocabularies mostly list merged tokens in the order of
   * merges.
   */
  #mergedEntry = -1;
  /** The current position in the document. */
  at: number;

  constructor(bytes: Buffer, start: number, tokenTexts: TokenTexts) {
    this.#bytes = bytes;
    this.#tokenTexts = tokenTexts;
    this.#reader = new TokenTextReader(bytes, start);
    // The shortest merge, `"a b",`, has six bytes.
    this.#ids = new Int32Array(Math.ceil((bytes.length - start) / 6) * 3);
    this.at = start;
  }

  /**
   * Reads all merges up to the end of their list. False if one is invalid or they are not all of
   * one kind.
   */
  readAll(): boolean {
    if (!this.#skipIf(openList)) return false;
    if (this.#skipIf(closeList)) return true;
    let areLists: boolean | undefined;
    for (;;) {
      const isList = this.#skipIf(openList);
      areLists ??= isList;
      if (isList !== areLists || !(isList ? this.#readList() : this.#readText())) return false;
      if (this.#skipIf(closeList)) return true;
      if (!this.#skipIf(comma)) return false;
    }
  }

  /** Builds the table. Returns `undefined` if a pair is too far from its first slot. */
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
      // If a pair occurs twice, the library uses the last merge.
      slots[slot] = rank;
    }
    return { ids, slots };
  }

  #readList(): boolean {
    const reader = this.#reader;
    reader.end = 0;
    if (!this.#readTokenText() || !this.#skipIf(comma)) return false;
    const middle = reader.end;
    const leftHash = reader.hash;
    return this.#readTokenText() && this.#skipIf(closeList) && this.#add(middle, leftHash);
  }

  #readTokenText(): boolean {
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

  /** Adds the merge of the two token texts that were read. */
  #add(middle: number, leftHash: number): boolean {
    const { copied, end, hash } = this.#reader;
    const tokenTexts = this.#tokenTexts;
    const left = tokenTexts.find(copied, 0, middle, leftHash);
    const right = tokenTexts.find(copied, middle, end, hash);
    let merged = this.#mergedEntry + 1;
    if (!tokenTexts.hasText(merged, copied, 0, end)) {
      merged = tokenTexts.find(copied, 0, end, hashTokenText(copied, 0, end));
    }
    if (left === -1 || right === -1 || merged === -1) return false;
    this.#mergedEntry = merged;
    const place = this.#count++ * 3;
    this.#ids[place] = tokenTexts.idOfEntry(left);
    this.#ids[place + 1] = tokenTexts.idOfEntry(right);
    this.#ids[place + 2] = tokenTexts.idOfEntry(merged);
    return true;
  }

  /** Skips white space, and then `byte` if it is next. */
  #skipIf(byte: number): boolean {
    this.at = skipSpace(this.#bytes, this.at);
    if (this.#bytes[this.at] !== byte) return false;
    this.at += 1;
    return true;
  }
}

function isComment(spelled: Buffer): boolean {
  return spelled.subarray(0, comment.length).equals(comment);
}
