import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { type MergeTable, rankOf } from "./merge-table.ts";

/** How many merges are looked at between two questions for a turn. */
const stretch = 256;

/** Ranks and places share a number: a rank is a multiple of this, and a piece is shorter. */
const placeCount = 2 ** 30;

/**
 * Merges a piece of any length, with work that grows little faster than that: pairs wait in the order of their ranks,
 * the leftmost of equals first, and one whose parts have merged otherwise meanwhile is passed over.
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
  // The symbol before each and the one behind it; -1 and `count` where there is none.
  const before = new Int32Array(count);
  const behind = new Int32Array(count);
  for (let at = 0; at < count; at++) {
    if (at % stretch === 0 && isTurnOver()) await takeTurn();
    symbols[at] = byteIds[bytes[at] as number] as number;
    before[at] = at - 1;
    behind[at] = at + 1;
  }
  const waiting = new LeastFirst();
  const look = (at: number): void => {
    const next = behind[at] as number;
    if (next === count) return;
    const rank = rankOf(table, symbols[at] as number, symbols[next] as number);
    if (rank !== -1) waiting.add(rank * placeCount + at);
  };
  for (let at = 0; at < count; at++) {
    if (at % stretch === 0 && isTurnOver()) await takeTurn();
    look(at);
  }
  for (let step = 0; ; step++) {
    if (step % stretch === 0 && isTurnOver()) await takeTurn();
    const first = waiting.take();
    if (first === undefined) break;
    const at = first % placeCount;
    const rank = (first - at) / placeCount;
    const next = behind[at] as number;
    const isThere = symbols[at] !== gone && next !== count;
    if (!isThere || rankOf(table, symbols[at] as number, symbols[next] as number) !== rank)
      continue;
    symbols[at] = table.ids[rank * 3 + 2] as number;
    symbols[next] = gone;
    const after = behind[next] as number;
    behind[at] = after;
    if (after !== count) before[after] = at;
    const previous = before[at] as number;
    if (previous !== -1) look(previous);
    look(at);
  }
  const ids: number[] = [];
  for (let at = 0; at < count; at = behind[at] as number) ids.push(symbols[at] as number);
  return ids;
}

/** Stands where a symbol has become part of the one before it. */
const gone = -1;

/** Numbers, of which the least is taken first: a binary heap. */
class LeastFirst {
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
    const least = heap[0];
    const last = heap.pop();
    if (heap.length === 0 || last === undefined) return least;
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
    return least;
  }
}
