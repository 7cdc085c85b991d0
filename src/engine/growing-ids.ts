import { growth, IdText } from "./id-text.ts";
import type { TokenIds } from "./token-id.ts";

/** Minimum number of ids of a list whose JSON is kept. Writing a shorter list again is fast. */
const minTextCount = 256;

/** The list that owns a buffer. */
const owners = new WeakMap<ArrayBufferLike, GrowingIds>();

/**
 * An append-only list of token ids: 4 bytes per id, and up to 7 more while its JSON is kept. Readers get a view of its
 * memory. Readers must not change the memory. If a reader does, `isDetached` or a hash of the ids shows it.
 */
export class GrowingIds {
  #ids = new Int32Array(0);
  #count = 0;
  #view = this.#ids;
  #isDetached = false;
  #text: IdText | undefined;
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

  /**
   * Appends ids.
   *
   * @param ids - Valid token ids.
   */
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
    this.#text?.keepAtMost(this.#count);
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
   * Returns the JSON of the first ids without brackets (see `IdText.of()`). The first call returns `undefined`,
   * because most lists are sent once. Later calls write only the ids that are new.
   */
  text(count: number): Uint8Array | undefined {
    if (count < minTextCount || count > this.#count || this.isDetached) return undefined;
    if (!this.#isTextNeeded) {
      this.#isTextNeeded = true;
      return undefined;
    }
    this.#text ??= new IdText();
    return this.#text.of(this.#ids, count);
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
