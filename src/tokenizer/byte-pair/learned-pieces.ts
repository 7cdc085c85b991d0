import type { ByteLevelText } from "./byte-level.ts";
import type { AddedToken } from "../codec.ts";
import type { PieceMerger } from "./merge-piece.ts";
import type { JsonObject } from "../model-file.ts";
import { createPieceCutter, type Cuts, type PieceCutter, piecesOf } from "./piece-splitter.ts";
import { ShortPieces } from "./short-pieces.ts";

/** Longest text that is cut into pieces here, in UTF-16 units: a fraction of a millisecond. */
const maxTextLength = 8192;

/** How many pieces are kept before the ones that were not seen for longest are forgotten. */
const defaultRecentCount = 32_768;

/** How much recent pieces may take together: many times what as many words do, in bytes. */
const defaultRecentSize = 4 * 1024 * 1024;

/** How many texts must have been cut here as the library cut them before new words are merged without it. */
const patience = 256;

/** What became of a text that the library cut. */
export interface LibraryEncoding {
  readonly ids: readonly number[];
  /** `words[i]`: which piece of the text, from 0 on, `ids[i]` is of. */
  readonly words: readonly (number | null | undefined)[];
}

/**
 * Makes what remembers a tokenizer's pieces, for a file whose patterns are known (`isWellKnown()`).
 *
 * @returns `undefined` where the tokenizer is of a kind whose pieces are not found here.
 */
export function createLearnedPieces({
  outline,
  bytes,
  addedTokens,
  recentCount = defaultRecentCount,
  recentSize = defaultRecentSize,
  merger,
}: {
  readonly outline: JsonObject;
  readonly bytes: ByteLevelText | undefined;
  readonly addedTokens: readonly AddedToken[];
  /** How many pieces are kept at the least; twice as many at the most. Default 32,768. */
  readonly recentCount?: number;
  /** How much of them is kept at the most, in bytes, and once more of those that are older. Default 4 MiB. */
  readonly recentSize?: number;
  /** What the model itself does with a piece, if that is known here. */
  readonly merger?: PieceMerger;
}): LearnedPieces | undefined {
  const cut = createPieceCutter(outline);
  if (cut === undefined || bytes === undefined) return undefined;
  return new LearnedPieces({ cut, bytes, addedTokens, recentCount, recentSize, merger });
}

/**
 * What a tokenizer's model made of the pieces of earlier texts. A model looks at each piece alone, so
 * that a text whose pieces are all known has their ids, one after the other, without asking it again.
 *
 * What is learned is checked: the library must have cut the text at the same places, and the ids of each
 * piece must spell it. The first text that fails this ends it: nothing is known from then on.
 *
 * New words keep coming, as names and numbers do: once many texts were cut here as the library cut them, the
 * model's own rules are used for pieces that are not known.
 */
class LearnedPieces {
  readonly #cutter: PieceCutter;
  readonly #bytes: ByteLevelText;
  readonly #addedIds: ReadonlyMap<string, number>;
  readonly #recentCount: number;
  readonly #recentSize: number;
  readonly #merger: PieceMerger | undefined;
  #learnedCount = 0;
  #isTrusted = true;
  #recent = new Map<string, number | readonly number[]>();
  /** What the recent pieces take, in bytes. */
  #size = 0;
  #older: ReadonlyMap<string, number | readonly number[]> = new Map();
  /** Some of the recent ones and of the added tokens, to be found faster. */
  readonly #short = new ShortPieces();

  constructor({
    cut,
    bytes,
    addedTokens,
    recentCount,
    recentSize,
    merger,
  }: {
    readonly cut: PieceCutter;
    readonly bytes: ByteLevelText;
    readonly addedTokens: readonly AddedToken[];
    readonly recentCount: number;
    readonly recentSize: number;
    readonly merger: PieceMerger | undefined;
  }) {
    this.#cutter = cut;
    this.#bytes = bytes;
    this.#addedIds = new Map(addedTokens.map(({ content, id }) => [content, id]));
    this.#recentCount = recentCount;
    this.#recentSize = recentSize;
    this.#merger = merger;
  }

  /** The text's ids where all of its pieces are known. */
  encodeNow(text: string): number[] | undefined {
    const cuts = this.#cut(text);
    if (cuts === undefined) return undefined;
    const { ends, count } = cuts;
    const ids: number[] = [];
    for (let place = 0, from = 0; place < count; place++) {
      const end = ends[place] as number;
      if (!this.#short.append(ids, text, from, end)) {
        const known = this.#find(text.slice(from, end));
        if (known === undefined) return undefined;
        this.#short.keep(known, text, from, end);
        if (typeof known === "number") ids.push(known);
        else for (const id of known) ids.push(id);
      }
      from = end;
    }
    return ids;
  }

  #find(piece: string): number | readonly number[] | undefined {
    const known = this.#recent.get(piece) ?? this.#addedIds.get(piece) ?? this.#recall(piece);
    if (known !== undefined) return known;
    if (this.#learnedCount < patience) return undefined;
    const ids = this.#merger?.mergeNow(Buffer.from(piece));
    if (ids !== undefined) this.#keep(piece, ids);
    return ids;
  }

  /** Learns from what became of a text that the library cut; `encoding` is read where that is of use. */
  learn(text: string, encoding: () => LibraryEncoding): void {
    const cuts = this.#cut(text);
    if (cuts === undefined) return;
    const { ids, words } = encoding();
    let from = 0;
    for (const piece of piecesOf(text, cuts)) {
      const word = words[from];
      let end = from;
      while (end < ids.length && words[end] === word) end += 1;
      if (!this.#learnPiece(piece, ids, from, end)) return this.#forgetAll();
      from = end;
    }
    if (from < ids.length) return this.#forgetAll();
    this.#learnedCount += 1;
  }

  /** Learns that `ids` from one place to another are the piece's; `false` where they cannot be. */
  #learnPiece(piece: string, ids: readonly number[], from: number, end: number): boolean {
    const known = this.#recent.get(piece) ?? this.#addedIds.get(piece) ?? this.#recall(piece);
    if (typeof known === "number") return end - from === 1 && ids[from] === known;
    if (known !== undefined) {
      return known.length === end - from && known.every((id, place) => ids[from + place] === id);
    }
    const own = ids.slice(from, end);
    if (this.#bytes.decodeNow(own) !== piece) return false;
    this.#keep(piece, own);
    return true;
  }

  #forgetAll(): void {
    this.#isTrusted = false;
    this.#recent.clear();
    this.#older = new Map();
    this.#short.forgetAll();
  }

  #cut(text: string): Cuts | undefined {
    return this.#isTrusted && text.length <= maxTextLength ? this.#cutter(text) : undefined;
  }

  /** Brings a piece of the older ones among the recent. */
  #recall(piece: string): number | readonly number[] | undefined {
    const known = this.#older.get(piece);
    if (known !== undefined) this.#keep(piece, typeof known === "number" ? [known] : known);
    return known;
  }

  #keep(piece: string, ids: readonly number[]): void {
    // One byte or two for each unit of the text, eight for each id.
    const size = piece.length * 2 + ids.length * 8;
    if (this.#recent.size >= this.#recentCount || this.#size + size > this.#recentSize) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#size = 0;
      // What is found there would not come back from the older ones.
      this.#short.forgetAll();
    }
    this.#size += size;
    const [only] = ids;
    // A piece as it was cut would keep its whole text in memory.
    const key = Buffer.from(piece).toString();
    this.#recent.set(key, only !== undefined && ids.length === 1 ? only : [...ids]);
  }
}
