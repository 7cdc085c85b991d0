import { byteSpellings } from "./byte-level.ts";
import { type MergeTable, rankOf } from "./merge-table.ts";

/** The ids of one piece, which is told by its bytes; `undefined` where it is too long. */
export type PieceMerger = (bytes: ArrayLike<number>) => number[] | undefined;

/** Longest piece that is merged here, in bytes: work grows with the square. */
const maxByteCount = 512;

/** What a byte-level model does with a piece. */
export interface MergeRules {
  readonly table: MergeTable;
  /** The id of each byte. */
  readonly byteIds: Int32Array;
  /** The id of a spelling, for models that take a piece that is in the vocabulary as it is (`ignore_merges`). */
  readonly idOfWhole?: ((spelling: string) => number | undefined) | undefined;
}

/**
 * Makes what a byte-level model does with a piece: of all neighbours that merge, the pair of the lowest
 * rank is merged first, the leftmost of equals, until none is left.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/models/bpe/word.rs` (`merge_all`).
 */
export function createPieceMerger({ table, byteIds, idOfWhole }: MergeRules): PieceMerger {
  const symbols = new Int32Array(maxByteCount);
  /** Of each symbol with the one after it: the rank of their merge. */
  const ranks = new Int32Array(maxByteCount);

  function look(at: number): void {
    const rank = rankOf(table, symbols[at] as number, symbols[at + 1] as number);
    ranks[at] = rank === -1 ? noRank : rank;
  }

  return (bytes) => {
    let count = bytes.length;
    if (count > maxByteCount) return undefined;
    if (idOfWhole !== undefined) {
      const whole = idOfWhole(Array.from(bytes, (byte) => byteSpellings[byte]).join(""));
      if (whole !== undefined) return [whole];
    }
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
      if (best === -1) return Array.from(symbols.subarray(0, count));
      symbols[best] = table.ids[bestRank * 3 + 2] as number;
      symbols.copyWithin(best + 1, best + 2, count);
      ranks.copyWithin(best + 1, best + 2, count);
      count -= 1;
      if (best > 0) look(best - 1);
      if (best + 1 < count) look(best);
    }
  };
}

/** Beyond every rank. */
const noRank = 2 ** 31 - 1;
