import { byteSpellings } from "./byte-level.ts";
import { mergeLongPiece } from "./merge-long-piece.ts";
import { type MergeTable, rankOf } from "./merge-table.ts";

/** What a model does with a piece, which is told by its bytes. */
export interface PieceMerger {
  /** The piece's ids; `undefined` where it is too long to be merged at once. */
  readonly mergeNow: (bytes: ArrayLike<number>) => number[] | undefined;
  /** The ids of a piece of any length, in turns where it is long. */
  readonly merge: (bytes: ArrayLike<number>) => number[] | Promise<number[]>;
}

/** Longest piece that is merged at once, in bytes: work grows with the square. */
const maxByteCount = 128;

/** What a byte-level model does with a piece. */
export interface MergeRules {
  readonly table: MergeTable;
  /** The id of each byte. */
  readonly byteIds: Int32Array;
  /** The id of a spelling, for models that take a piece that is in the vocabulary as it is (`ignore_merges`). */
  readonly idOfWhole?: ((spelling: string) => number | undefined) | undefined;
  /** No spelling of the vocabulary has more bytes. Default: one may have any number. */
  readonly longestWhole?: number;
}

/**
 * Makes what a byte-level model does with a piece: of all neighbours that merge, the pair of the lowest
 * rank is merged first, the leftmost of equals, until none is left.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/models/bpe/word.rs` (`merge_all`).
 */
export function createPieceMerger({
  table,
  byteIds,
  idOfWhole,
  longestWhole = Infinity,
}: MergeRules): PieceMerger {
  const symbols = new Int32Array(maxByteCount);
  /** Of each symbol with the one after it: the rank of their merge. */
  const ranks = new Int32Array(maxByteCount);

  function look(at: number): void {
    const rank = rankOf(table, symbols[at] as number, symbols[at + 1] as number);
    ranks[at] = rank === -1 ? noRank : rank;
  }

  function mergeNow(bytes: ArrayLike<number>): number[] | undefined {
    let count = bytes.length;
    if (count > maxByteCount) return undefined;
    const whole = idOfWhole?.(spell(bytes));
    if (whole !== undefined) return [whole];
    for (let at = 0; at < count; at++) symbols[at] = byteIds[bytes[at] as number] as number;
    for (let at = 0; at + 1 < count; at++) look(at);
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
      // Most pieces are short: asking for a copy within would take longer than making it.
      for (let at = best + 1; at < count; at++) {
        symbols[at] = symbols[at + 1] as number;
        ranks[at] = ranks[at + 1] as number;
      }
      if (best > 0) look(best - 1);
      if (best + 1 < count) look(best);
    }
  }

  return {
    mergeNow,
    merge(bytes) {
      const ids = mergeNow(bytes);
      if (ids !== undefined) return ids;
      const whole = bytes.length <= longestWhole ? idOfWhole?.(spell(bytes)) : undefined;
      return whole === undefined ? mergeLongPiece({ table, byteIds }, bytes) : [whole];
    },
  };
}

function spell(bytes: ArrayLike<number>): string {
  return Array.from(bytes, (byte) => byteSpellings[byte]).join("");
}

/** Beyond every rank. */
const noRank = 2 ** 31 - 1;
