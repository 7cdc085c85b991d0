import { byteSpellings } from "./byte-level.ts";
import { slotOf, type MergeTable } from "./merge-table.ts";

/** The ids of one piece; `undefined` where it is too long. */
export type PieceMerger = (piece: string) => number[] | undefined;

/** Longest piece that is merged here, in bytes: work grows with the square. */
const maxByteCount = 128;

/**
 * Makes what a byte-level model does with a piece: of all neighbours that merge, the pair of the lowest
 * rank is merged first, the leftmost of equals, until none is left.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/models/bpe/word.rs` (`merge_all`).
 *
 * @param idOfWhole - The id of a spelling, for models that take a piece that is in the vocabulary as it
 *   is (`ignore_merges`).
 */
export function createPieceMerger(
  { byteIds, slots }: MergeTable,
  idOfWhole?: (spelling: string) => number | undefined,
): PieceMerger {
  const symbols = new Int32Array(maxByteCount);
  /** Of each symbol with the one after it: the rank of their merge, and what they become. */
  const ranks = new Int32Array(maxByteCount);
  const merged = new Int32Array(maxByteCount);

  function look(at: number): void {
    const place = slotOf(slots, symbols[at] as number, symbols[at + 1] as number);
    const isPair = slots[place] !== -1;
    ranks[at] = isPair ? (slots[place + 2] as number) : noRank;
    merged[at] = slots[place + 3] as number;
  }

  return (piece) => {
    const bytes = Buffer.from(piece);
    let count = bytes.length;
    if (count > maxByteCount) return undefined;
    if (idOfWhole !== undefined) {
      const whole = idOfWhole(Array.from(bytes, (byte) => byteSpellings[byte]).join(""));
      if (whole !== undefined) return [whole];
    }
    for (const [at, byte] of bytes.entries()) symbols[at] = byteIds[byte] as number;
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
      symbols[best] = merged[best] as number;
      symbols.copyWithin(best + 1, best + 2, count);
      ranks.copyWithin(best + 1, best + 2, count);
      merged.copyWithin(best + 1, best + 2, count);
      count -= 1;
      if (best > 0) look(best - 1);
      if (best + 1 < count) look(best);
    }
  };
}

/** Beyond every rank. */
const noRank = 2 ** 31 - 1;
