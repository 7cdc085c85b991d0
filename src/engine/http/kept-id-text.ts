import { roomForIds, writeIds } from "../../json/write-ids.ts";

/** Of a shorter list nothing is kept: it is written in a moment. */
const leastCount = 256;

/** How many times what is needed there is room for: a turn adds a small part to a prompt. */
const growth = 1.25;

/** The JSON of a list of ids, without its brackets, kept for when there are more behind them: some 12 bytes an id. */
class KeptIdText {
  /** The ids that are written. */
  #ids = new Int32Array(0);
  #count = 0;
  #bytes = Buffer.alloc(0);
  /** Where the text ends, its last comma included. */
  #end = 0;

  /**
   * The text of the first so many of these ids, good until the next call; `undefined` where one is no id: nothing that
   * is kept is of use any more then.
   */
  write(ids: readonly number[], count: number): Uint8Array | undefined {
    let first = this.#countKept(ids, count);
    // Whoever has a list may have written into it.
    if (first < this.#count) first = 0;
    // Each new one is read once: what is noted is what is written.
    const added: number[] = [];
    for (let place = first; place < count; place++) added.push(ids[place]!);
    if (added.length > 0 && !this.#append(added, first)) return undefined;
    return this.#bytes.subarray(0, this.#end - 1);
  }

  /** How many of the ids that are written the list begins with. */
  #countKept(ids: readonly number[], length: number): number {
    const kept = this.#ids;
    const most = Math.min(this.#count, length);
    let count = 0;
    while (count < most && ids[count] === kept[count]) count++;
    return count;
  }

  /** Writes ids behind the first so many. Whether all of them are ids. */
  #append(added: readonly number[], first: number): boolean {
    const start = first === 0 ? 0 : this.#end;
    const needed = start + roomForIds(added);
    if (needed > this.#bytes.length) {
      const bytes = Buffer.allocUnsafeSlow(Math.ceil(needed * growth));
      bytes.set(this.#bytes.subarray(0, start));
      this.#bytes = bytes;
    }
    const { buffer, byteOffset, length } = this.#bytes;
    const end = writeIds(new DataView(buffer, byteOffset, length), start, added);
    if (end < 0) return false;
    const count = first + added.length;
    if (count > this.#ids.length) {
      const ids = new Int32Array(Math.ceil(count * growth));
      ids.set(this.#ids.subarray(0, first));
      this.#ids = ids;
    }
    this.#ids.set(added, first);
    this.#count = count;
    this.#end = end + 1;
    return true;
  }
}

/** Lists that were asked for; what is kept of one since the second time. */
const seen = new WeakMap<readonly number[], KeptIdText | "once">();

/**
 * The JSON of a list of ids, without its brackets, for one that was asked for before: a prompt is sent each turn, and
 * what is added to it is all that is new then. The first time nothing is kept, for most lists have no second, and the
 * second all of it is written; from the third on what is new is.
 *
 * @returns bytes that are good until the next call; `undefined` the first time, for a short list, and where one is no
 *   id.
 */
export function textOfKnownIds(ids: readonly number[]): Uint8Array | undefined {
  const count = ids.length;
  if (count < leastCount) return undefined;
  const found = seen.get(ids);
  // Whatever goes wrong meanwhile, as where a list is no plain one and throws, nothing half done is kept.
  seen.set(ids, "once");
  if (found === undefined) return undefined;
  const kept = found === "once" ? new KeptIdText() : found;
  const text = kept.write(ids, count);
  if (text !== undefined) seen.set(ids, kept);
  return text;
}
