import type { JsonObject } from "../../values/is-object.ts";
import type { ByteLevelText } from "./byte-level.ts";
import type { AddedToken } from "../codec.ts";
import type { PieceMerger } from "./merge-piece.ts";
import { createPieceCutter, type Cuts, type PieceCutter, piecesOf } from "./piece-splitter.ts";
import { ShortPieces } from "./short-pieces.ts";

/**
 * Maximum length of a text to cut into pieces here, in UTF-16 units: a fraction of a millisecond.
 */
const maxTextLength = 8192;

/** Minimum number of recent pieces before older ones are dropped. */
const defaultRecentCount = 32_768;

/** Maximum size of recent pieces, in bytes. Far more than that many ordinary words take. */
const defaultRecentSize = 4 * 1024 * 1024;

/**
 * Number of texts that must be cut as the library cut them, before new words are merged without it.
 */
const trustCount = 256;

/** The library's encoding of a text. */
export interface LibraryEncoding {
  readonly ids: readonly number[];
  /** `words[i]` is the index of the piece of the text that `ids[i]` belongs to. */
  readonly words: readonly (number | null | undefined)[];
}

/**
 * Creates a memory of a tokenizer's pieces, for a file with known patterns (`isWellKnown()`).
 *
 * @returns `undefined` if this kind of tokenizer is not cut into pieces here.
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
  /** Minimum number of pieces to keep; the maximum is twice that. Default 32,768. */
  readonly recentCount?: number;
  /** Maximum size of recent pieces in bytes; older ones may take the same again. Default 4 MiB. */
  readonly recentSize?: number;
  /** The model's merges, if they are known here. */
  readonly merger?: PieceMerger;
}): LearnedPieces | undefined {
  const cut = createPieceCutter(outline);
  if (cut === undefined || bytes === undefined) return undefined;
  return new LearnedPieces({ cut, bytes, addedTokens, recentCount, recentSize, merger });
}

/**
 * The ids of pieces of earlier texts.
 *
 * A model encodes each piece alone. If all pieces of a text are known, their ids in order are those
 * of the text, and the library is not needed.
 *
 * Learned pieces are checked: the library must have cut the text at the same places, and the ids of
 * each piece must decode to it. After the first text that fails this check, the memory is disabled.
 *
 * New words such as names and numbers keep appearing. After enough texts were cut as the library
 * cut them, unknown pieces are merged here.
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
  /** Size of the recent pieces, in bytes. */
  #size = 0;
  #older: ReadonlyMap<string, number | readonly number[]> = new Map();
  /** Recent pieces and added tokens that can be found faster. */
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

  /** Returns the text's ids if all of its pieces are known. */
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
    if (this.#learnedCount < trustCount) return undefined;
    const ids = this.#merger?.mergeNow(Buffer.from(piece));
    if (ids !== undefined) this.#keep(piece, ids);
    return ids;
  }

  /** Learns the pieces of a text that the library encoded. `encoding` is called only if needed. */
  learn(text: string, encoding: () => LibraryEncoding): void {
    const cuts = this.#cut(text);
    if (cuts === undefined) return;
    const { ids, words } = encoding();
    let from = 0;
    for (const piece of piecesOf(text, cuts)) {
      const word = words[from];
      let end = from;
      while (end < ids.length && words[end] === word) end += 1;
      if (!this.#learnPiece(piece, ids, from, end)) return this.#disable();
      from = end;
    }
    if (from < ids.length) return this.#disable();
    this.#learnedCount += 1;
  }

  /** Learns that a range of `ids` encodes the piece. Returns `false` if it cannot. */
  #learnPiece(piece: string, ids: readonly number[], from: number, end: number): boolean {
    const known = this.#recent.get(piece) ?? this.#addedIds.get(piece) ?? this.#recall(piece);
    if (typeof known === "number") return end - from === 1 && ids[from] === known;
    if (known !== undefined) {
      return known.length === end - from && known.every((id, place) => ids[from + place] === id);
    }
    const pieceIds = ids.slice(from, end);
    if (this.#bytes.decodeNow(pieceIds) !== piece) return false;
    this.#keep(piece, pieceIds);
    return true;
  }

  #disable(): void {
    this.#isTrusted = false;
    this.#recent.clear();
    this.#older = new Map();
    this.#short.clear();
  }

  #cut(text: string): Cuts | undefined {
    return this.#isTrusted && text.length <= maxTextLength ? this.#cutter(text) : undefined;
  }

  /** Moves an older piece to the recent ones. */
  #recall(piece: string): number | readonly number[] | undefined {
    const known = this.#older.get(piece);
    if (known !== undefined) this.#keep(piece, typeof known === "number" ? [known] : known);
    return known;
  }

  #keep(piece: string, ids: readonly number[]): void {
    // One or two bytes for each unit of the text, eight for each id.
    const size = piece.length * 2 + ids.length * 8;
    if (this.#recent.size >= this.#recentCount || this.#size + size > this.#recentSize) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#size = 0;
      // A slice would keep the complete text in memory.
      this.#short.clear();
    }
    this.#size += size;
    const [only] = ids;
    // A slice would keep the complete text in memory.
    const key = Buffer.from(piece).toString();
    this.#recent.set(key, only !== undefined && ids.length === 1 ? only : [...ids]);
  }
}
