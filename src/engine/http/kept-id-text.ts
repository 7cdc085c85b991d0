import { roomForIds, writeIds } from "../../json/write-ids.ts";

/** Shorter lists are not cached: writing them is fast. */
const minCount = 256;

/** Extra capacity of a buffer that grows, as a factor. A turn adds a small part to a prompt. */
const growth = 1.25;

/**
 * The JSON of a list of ids without its brackets, kept so that later ids can be appended. About 12
 * bytes per id.
 */
class KeptIdText {
  /** The ids that the buffered text contains. */
  #ids = new Int32Array(0);
  #count = 0;
  #bytes = Buffer.alloc(0);
  /** The end of the text, including its last comma. */
  #end = 0;

  /**
   * Returns the text of the first `count` ids, valid until the next call. Returns `undefined` if
   * one of them is not an id; the buffer must not be used afterwards.
   */
  write(ids: readonly number[], count: number): Uint8Array | undefined {
    let first = this.#countKept(ids, count);
    // The list's owner may have changed earlier ids.
    if (first < this.#count) first = 0;
    // Each new id is read once, so the recorded id is the written one.
    const added: number[] = [];
    for (let place = first; place < count; place++) added.push(ids[place]!);
    if (added.length > 0 && !this.#append(added, first)) return undefined;
    return this.#bytes.subarray(0, this.#end - 1);
  }

  /** Counts the leading ids of the list that the buffered text already contains. */
  #countKept(ids: readonly number[], length: number): number {
    const kept = this.#ids;
    const limit = Math.min(this.#count, length);
    let count = 0;
    while (count < limit && ids[count] === kept[count]) count++;
    return count;
  }

  /** Writes ids after the first `first` ones. False if one of them is not an id. */
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

/** The lists of earlier calls, with the cached text of those that were used at least twice. */
const seen = new WeakMap<readonly number[], KeptIdText | "once">();

/**
 * Returns the JSON of a list of ids without its brackets, if the list was used before.
 *
 * A prompt is sent each turn with more ids at its end. The first call caches nothing, because most
 * lists are used once. The second call writes the complete text. Later calls write only the new
 * ids.
 *
 * @returns bytes that are valid until the next call, or `undefined` for the first call, a short
 *   list, and a list with a value that is not an id.
 */
export function textOfKnownIds(ids: readonly number[]): Uint8Array | undefined {
  const count = ids.length;
  if (count < minCount) return undefined;
  const found = seen.get(ids);
  // Reset first: if `write()` throws, for example on a list with getters, no half-written text
  // stays.
  seen.set(ids, "once");
  if (found === undefined) return undefined;
  const kept = found === "once" ? new KeptIdText() : found;
  const text = kept.write(ids, count);
  if (text !== undefined) seen.set(ids, kept);
  return text;
}
