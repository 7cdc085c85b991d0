import { roomForIds, writeIds } from "../json/write-ids.ts";
import type { TokenIds } from "./token-id.ts";

/** Extra capacity of a buffer that grows, as a factor. A turn adds a small part to a prompt. */
const growth = 1.25;

/** The text of shorter lists is not kept: writing it is fast. */
const minTextCount = 256;

/** The list that owns a buffer. */
const owners = new WeakMap<ArrayBufferLike, GrowingIds>();

/**
 * An append-only list of token ids: 4 bytes per id, and 7 more once its JSON was needed twice. Readers get a view of
 * its memory. They must not change it, but can: `isDetached` and a hash of the ids show that.
 */
export class GrowingIds {
  #ids = new Int32Array(0);
  #count = 0;
  #view = this.#ids;
  #isDetached = false;
  /** The JSON of the first `#textCount` ids without brackets, with a comma after each. */
  #text = Buffer.alloc(0);
  #textCount = 0;
  #textEnd = 0;
  #isTextNeeded = false;

  get length(): number {
    return this.#count;
  }

  /** A view of all ids so far. Later ids do not appear in it. */
  get view(): Int32Array {
    this.#replaceLost();
    if (this.#view.length !== this.#count) this.#view = this.#ids.subarray(0, this.#count);
    return this.#view;
  }

  /** True if a reader has transferred the memory to another thread, which loses the ids. */
  get isDetached(): boolean {
    return this.#isDetached || this.#ids.length < this.#count;
  }

  /** @param ids - Valid token ids. */
  append(ids: TokenIds): void {
    const count = this.#count + ids.length;
    this.#replaceLost();
    if (count > this.#ids.length) this.#grow(Math.ceil(count * growth));
    this.#ids.set(ids, this.#count);
    this.#count = count;
  }

  /** Removes the last id. */
  removeLast(): void {
    this.#count -= 1;
    if (this.#textCount > this.#count) this.#textCount = this.#textEnd = 0;
  }

  /** Replaces ids that a reader has transferred by zeros, so that the record can continue. */
  #replaceLost(): void {
    if (!this.isDetached) return;
    this.#isDetached = true;
    if (this.#ids.length < this.#count) this.#ids = new Int32Array(this.#count);
  }

  #grow(capacity: number): void {
    const grown = new Int32Array(capacity);
    grown.set(this.#ids.subarray(0, this.#count));
    owners.delete(this.#ids.buffer);
    owners.set(grown.buffer, this);
    this.#ids = grown;
    this.#view = grown.subarray(0, 0);
  }

  /**
   * Returns the JSON of the first ids without brackets, valid until the next call. The first call returns `undefined`,
   * because most lists are sent once. Later calls write only the ids that are new.
   */
  text(count: number): Uint8Array | undefined {
    if (count < minTextCount || count > this.#count || this.isDetached) return undefined;
    const isNeeded = this.#isTextNeeded;
    this.#isTextNeeded = true;
    if (!isNeeded || count < this.#textCount) return undefined;
    if (count > this.#textCount && !this.#writeText(count)) return undefined;
    return this.#text.subarray(0, this.#textEnd - 1);
  }

  /** Returns false if a reader has put a number below 0 in the place of an id. */
  #writeText(count: number): boolean {
    const added = this.#ids.subarray(this.#textCount, count);
    const needed = this.#textEnd + roomForIds(added);
    if (needed > this.#text.length) {
      const grown = Buffer.allocUnsafeSlow(Math.ceil(needed * growth));
      grown.set(this.#text.subarray(0, this.#textEnd));
      this.#text = grown;
    }
    const { buffer, byteOffset, length } = this.#text;
    const end = writeIds(new DataView(buffer, byteOffset, length), this.#textEnd, added);
    if (end < 0) return false;
    this.#textEnd = end + 1;
    this.#textCount = count;
    return true;
  }
}

/**
 * Returns the cached text of ids that are a view of `GrowingIds` (see `text()`). Returns
 * `undefined` for other lists.
 */
export function knownIdText(ids: TokenIds): Uint8Array | undefined {
  if (!(ids instanceof Int32Array) || ids.byteOffset !== 0) return undefined;
  return owners.get(ids.buffer)?.text(ids.length);
}
