import { byteCharacters } from "./byte-level.ts";
import { mergeLongPiece } from "./merge-long-piece.ts";
import { type MergeTable, rankOf } from "./merge-table.ts";

/** Merges the bytes of a piece to ids. */
export interface PieceMerger {
  /** Returns the piece's ids, or `undefined` if it is too long to merge at once. */
  readonly mergeNow: (bytes: ArrayLike<number>) => number[] | undefined;
  /** Returns the ids of a piece of any length. Yields to other tasks if it is long. */
  readonly merge: (bytes: ArrayLike<number>) => number[] | Promise<number[]>;
}

/** Maximum length of a piece to merge at once, in bytes. The work grows with its square. */
const maxByteCount = 128;

/** The parts of a byte-level model that merging needs. */
export interface MergeRules {
  readonly table: MergeTable;
  /** The id of each byte. */
  readonly byteIds: Int32Array;
  /** Returns the id of a token text, for models that use a vocabulary entry without merging (`ignore_merges`). */
  readonly idOfTokenText?: ((tokenText: string) => number | undefined) | undefined;
  /** Number of bytes of the vocabulary's longest token text. Default: unlimited. */
  readonly longestTokenText?: number;
}

/**
 * Creates the merge step of a byte-level model. Of all adjacent pairs that merge, the pair of the
 * lowest rank is merged first, the leftmost of equals, until none is left.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/models/bpe/word.rs` (`merge_all`).
 */
export function createPieceMerger({
  table,
  byteIds,
  idOfTokenText,
  longestTokenText = Infinity,
}: MergeRules): PieceMerger {
  const symbols = new Int32Array(maxByteCount);
  /** The rank of the merge of each symbol with the next one. */
  const ranks = new Int32Array(maxByteCount);

  function updateRank(at: number): void {
    const rank = rankOf(table, symbols[at] as number, symbols[at + 1] as number);
    ranks[at] = rank === -1 ? noRank : rank;
  }

  function mergeNow(bytes: ArrayLike<number>): number[] | undefined {
    let count = bytes.length;
    if (count > maxByteCount) return undefined;
    const wholeId = idOfTokenText?.(toTokenText(bytes));
    if (wholeId !== undefined) return [wholeId];
    for (let at = 0; at < count; at++) symbols[at] = byteIds[bytes[at] as number] as number;
    for (let at = 0; at + 1 < count; at++) updateRank(at);
    for (;;) {
      let best = -1;
      let bestRank = noRank;
      for (let at = 0; at + 1 < count; at++) {
        if ((ranks[at] as number) < bestRank) {
          best = at;
          bestRank = ranks[at] as number;
        }
      }
      if (best === -1) {
        const ids: number[] = [];
        for (let at = 0; at < count; at++) ids.push(symbols[at] as number);
        return ids;
      }
      symbols[best] = table.ids[bestRank * 3 + 2] as number;
      count -= 1;
      // Most pieces are short, so this loop is faster than `copyWithin()`.
      for (let at = best + 1; at < count; at++) {
        symbols[at] = symbols[at + 1] as number;
        ranks[at] = ranks[at + 1] as number;
      }
      if (best > 0) updateRank(best - 1);
      if (best + 1 < count) updateRank(best);
    }
  }

  return {
    mergeNow,
    merge(bytes) {
      const ids = mergeNow(bytes);
      if (ids !== undefined) return ids;
      const wholeId =
        bytes.length <= longestTokenText ? idOfTokenText?.(toTokenText(bytes)) : undefined;
      return wholeId === undefined ? mergeLongPiece({ table, byteIds }, bytes) : [wholeId];
    },
  };
}

function toTokenText(bytes: ArrayLike<number>): string {
  return Array.from(bytes, (byte) => byteCharacters[byte]).join("");
}

/** A number above every rank. */
const noRank = 2 ** 31 - 1;
