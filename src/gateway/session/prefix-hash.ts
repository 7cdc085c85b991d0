import { createHash } from "node:crypto";

/** Hashes increasing prefixes of a byte array in a single pass. */
export class PrefixHash {
  readonly #bytes: Uint8Array;
  #hash = createHash("sha256");
  #length = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /**
   * Returns the hash of the first `length` bytes.
   *
   * @param length - At least the length of the previous call.
   */
  upTo(length: number): string {
    this.#hash.update(this.#bytes.subarray(this.#length, length));
    this.#length = length;
    return this.#hash.copy().digest("base64");
  }

  /** Returns a copy that continues from the same position. */
  fork(): PrefixHash {
    const fork = new PrefixHash(this.#bytes);
    fork.#hash = this.#hash.copy();
    fork.#length = this.#length;
    return fork;
  }
}
