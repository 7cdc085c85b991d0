import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { type MergeTable, rankOf } from "./merge-table.ts";

/** Number of merges between two checks of the event loop. */
const mergesPerCheck = 256;

/**
 * Combines rank and position in one number: `rank * placeCount + position`. Pieces are shorter than
 * this.
 */
const placeCount = 2 ** 30;

/**
 * Merges a piece of any length in almost linear time.
 *
 * A heap contains the pairs by rank, the leftmost of equals first. A pair is skipped if one of its
 * parts was merged otherwise in the meantime.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/models/bpe/word.rs` (`merge_all`).
 *
 * @param byteIds - The id of each byte.
 */
export async function mergeLongPiece(
  { table, byteIds }: { readonly table: MergeTable; readonly byteIds: Int32Array },
  bytes: ArrayLike<number>,
): Promise<number[]> {
  const count = bytes.length;
  const symbols = new Int32Array(count);
  // The positions of the symbols before and after each; -1 and `count` at the ends.
  const before = new Int32Array(count);
  const after = new Int32Array(count);
  for (let at = 0; at < count; at++) {
    if (at % mergesPerCheck === 0 && isShareOver()) await takeTurn();
    symbols[at] = byteIds[bytes[at] as number] as number;
    before[at] = at - 1;
    after[at] = at + 1;
  }
  const waiting = new MinHeap();
  const enqueue = (at: number): void => {
    const next = after[at] as number;
    if (next === count) return;
    const rank = rankOf(table, symbols[at] as number, symbols[next] as number);
    if (rank !== -1) waiting.add(rank * placeCount + at);
  };
  for (let at = 0; at < count; at++) {
    if (at % mergesPerCheck === 0 && isShareOver()) await takeTurn();
    enqueue(at);
  }
  for (let step = 0; ; step++) {
    if (step % mergesPerCheck === 0 && isShareOver()) await takeTurn();
    const first = waiting.take();
    if (first === undefined) break;
    const at = first % placeCount;
    const rank = (first - at) / placeCount;
    const next = after[at] as number;
    const isThere = symbols[at] !== merged && next !== count;
    if (!isThere || rankOf(table, symbols[at] as number, symbols[next] as number) !== rank)
      continue;
    symbols[at] = table.ids[rank * 3 + 2] as number;
    symbols[next] = merged;
    const following = after[next] as number;
    after[at] = following;
    if (following !== count) before[following] = at;
    const previous = before[at] as number;
    if (previous !== -1) enqueue(previous);
    enqueue(at);
  }
  const ids: number[] = [];
  for (let at = 0; at < count; at = after[at] as number) {
    if (ids.length % mergesPerCheck === 0 && isShareOver()) await takeTurn();
    ids.push(symbols[at] as number);
  }
  return ids;
}

/** Marks a symbol that has become a part of the one before it. */
const merged = -1;

/** A binary heap that returns the smallest number first. */
class MinHeap {
  readonly #heap: number[] = [];

  add(value: number): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(value);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as number;
      if (above <= value) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = value;
  }

  take(): number | undefined {
    const heap = this.#heap;
    const smallest = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || last === undefined) return smallest;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child++;
      if ((heap[child] as number) >= last) break;
      heap[at] = heap[child] as number;
      at = child;
    }
    heap[at] = last;
    return smallest;
  }
}
