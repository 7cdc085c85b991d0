import { idSlack, roomForIds, writeIds } from "../internal/write-ids.ts";

/** By how much room grows beyond what is needed: a turn adds a small part to a prompt. */
const growth = 1.25;

/** The JSON of a list of ids, without its brackets, kept for when there are more behind them. */
class KeptIdText {
  /** The ids that are written. */
  #ids = new Int32Array(0);
  #count = 0;
  #bytes = Buffer.alloc(0);
  /** Where the text ends, its last comma included. */
  #end = 0;

  /** The text of these ids, good until the next call; `undefined` where one is no id. */
  write(ids: readonly number[]): Uint8Array | undefined {
    let first = this.#countKept(ids);
    // Whoever has a list may have written into it.
    if (first < this.#count) first = 0;
    if (first < ids.length && !this.#writeFrom(ids, first)) return undefined;
    return this.#bytes.subarray(0, this.#end - 1);
  }

  /** How many of the ids that are written the list begins with. */
  #countKept(ids: readonly number[]): number {
    const kept = this.#ids;
    const most = Math.min(this.#count, ids.length);
    let count = 0;
    while (count < most && ids[count] === kept[count]) count++;
    return count;
  }

  #writeFrom(ids: readonly number[], first: number): boolean {
    const start = first === 0 ? 0 : this.#end;
    const needed = start + roomForIds(ids, first) + idSlack;
    if (needed > this.#bytes.length) {
      const bytes = Buffer.allocUnsafeSlow(Math.ceil(needed * growth));
      bytes.set(this.#bytes.subarray(0, start));
      this.#bytes = bytes;
    }
    const { buffer, byteOffset, length } = this.#bytes;
    const end = writeIds(new DataView(buffer, byteOffset, length), start, ids, { first });
    if (end < 0) {
      // What was behind the start is written over.
      if (first === 0) this.#count = this.#end = 0;
      return false;
    }
    if (ids.length > this.#ids.length) {
      const own = new Int32Array(Math.ceil(ids.length * growth));
      own.set(this.#ids.subarray(0, first));
      this.#ids = own;
    }
    for (let place = first; place < ids.length; place++) this.#ids[place] = ids[place]!;
    this.#count = ids.length;
    this.#end = end + 1;
    return true;
  }
}

/** Lists that were asked for; what is kept of one since the second time. */
const known = new WeakMap<readonly number[], KeptIdText | "once">();

/**
 * The JSON of a list of ids, without its brackets, for one that was asked for before: a prompt is sent each turn, and
 * what is added to it is all that is new then. The first time nothing is kept, for most lists have no second.
 *
 * @param ids - At least one.
 * @returns bytes that are good until the next call; `undefined` the first time, and where one is no id.
 */
export function textOfKnownIds(ids: readonly number[]): Uint8Array | undefined {
  const found = known.get(ids);
  if (found === undefined) {
    known.set(ids, "once");
    return undefined;
  }
  if (found !== "once") return found.write(ids);
  const kept = new KeptIdText();
  known.set(ids, kept);
  return kept.write(ids);
}
