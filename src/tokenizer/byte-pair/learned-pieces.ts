import type { JsonObject } from "../../values/is-object.ts";
import type { AddedToken } from "../codec.ts";
import type { ByteLevelText } from "./byte-level.ts";
import { type PieceIds, PieceMemory, type PieceMemoryBounds } from "./piece-memory.ts";
import { createPieceCutter, cutText, type PieceCutter } from "./piece-splitter.ts";

/**
 * Maximum length of a text to cut into pieces here, in UTF-16 units: a fraction of a millisecond.
 */
const maxTextLength = 8192;

/** The library's encoding of a text. */
export interface LibraryEncoding {
  readonly ids: readonly number[];
  /** `words[i]` is the index of the piece of the text that `ids[i]` belongs to. */
  readonly words: readonly (number | null | undefined)[];
}

/**
 * Creates a memory of a tokenizer's pieces, for a file with known patterns (`isWellKnown()`) if only
 * the library can read its merges.
 *
 * @returns `undefined` if this kind of tokenizer is not cut into pieces here.
 */
export function createLearnedPieces({
  outline,
  bytes,
  addedTokens,
  bounds,
}: {
  readonly outline: JsonObject;
  readonly bytes: ByteLevelText | undefined;
  readonly addedTokens: readonly AddedToken[];
  readonly bounds?: PieceMemoryBounds;
}): LearnedPieces | undefined {
  const cutter = createPieceCutter(outline);
  if (cutter === undefined || bytes === undefined) return undefined;
  return new LearnedPieces({ cutter, bytes, addedTokens, memory: new PieceMemory(bounds) });
}

/**
 * Remembers the ids of pieces of earlier texts.
 *
 * If all pieces of a text are known, their ids in order are those of the text, and the library is
 * not needed.
 *
 * Learned pieces are checked: the library must have cut the text at the same places, and the ids of
 * each piece must decode to it. After the first text that fails this check, the memory is disabled.
 */
class LearnedPieces {
  readonly #cutter: PieceCutter;
  readonly #bytes: ByteLevelText;
  readonly #addedIds: ReadonlyMap<string, number>;
  readonly #memory: PieceMemory;
  #isTrusted = true;

  constructor({
    cutter,
    bytes,
    addedTokens,
    memory,
  }: {
    readonly cutter: PieceCutter;
    readonly bytes: ByteLevelText;
    readonly addedTokens: readonly AddedToken[];
    readonly memory: PieceMemory;
  }) {
    this.#cutter = cutter;
    this.#bytes = bytes;
    this.#addedIds = new Map(addedTokens.map(({ content, id }) => [content, id]));
    this.#memory = memory;
  }

  /** Returns the text's ids if all of its pieces are known. */
  encodeNow(text: string): number[] | undefined {
    const ids: number[] = [];
    for (const piece of this.#piecesOf(text) ?? [undefined]) {
      const known = piece === undefined ? undefined : this.#find(piece);
      if (known === undefined) return undefined;
      if (typeof known === "number") ids.push(known);
      else for (const id of known) ids.push(id);
    }
    return ids;
  }

  /** Learns the pieces of a text that the library encoded. `encoding` is called only if needed. */
  learn(text: string, encoding: () => LibraryEncoding): void {
    const pieces = this.#piecesOf(text);
    if (pieces === undefined) return;
    const { ids, words } = encoding();
    let from = 0;
    for (const piece of pieces) {
      const word = words[from];
      let end = from;
      while (end < ids.length && words[end] === word) end += 1;
      if (!this.#learnPiece(piece, ids.slice(from, end))) return this.#disable();
      from = end;
    }
    if (from < ids.length) this.#disable();
  }

  /** Learns that the ids encode the piece. Returns `false` if they cannot. */
  #learnPiece(piece: string, ids: readonly number[]): boolean {
    const known = this.#find(piece);
    if (known !== undefined) return String(known) === String(ids);
    if (this.#bytes.decodeNow(ids) !== piece) return false;
    this.#memory.keep(piece, ids);
    return true;
  }

  #find(piece: string): PieceIds | undefined {
    return this.#addedIds.get(piece) ?? this.#memory.find(piece);
  }

  #disable(): void {
    this.#isTrusted = false;
    this.#memory.clear();
  }

  /** Returns the pieces of a text, or `undefined` if only the library can cut it. */
  #piecesOf(text: string): readonly string[] | undefined {
    if (!this.#isTrusted || text.length > maxTextLength) return undefined;
    return cutText(this.#cutter, text);
  }
}
