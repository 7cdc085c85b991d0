import { createHash } from "node:crypto";

/** The hashes of a text's beginnings, made as it is gone through once. */
export class PrefixHash {
  readonly #bytes: Uint8Array;
  #hash = createHash("sha256");
  #length = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /**
   * The hash of so many of the first bytes.
   *
   * @param length - No less than was asked for before, and no more than there are.
   */
  upTo(length: number): string {
    this.#hash.update(this.#bytes.subarray(this.#length, length));
    this.#length = length;
    return this.#hash.copy().digest("base64");
  }

  /** The same, to be gone on with from the same place. */
  fork(): PrefixHash {
    const fork = new PrefixHash(this.#bytes);
    fork.#hash = this.#hash.copy();
    fork.#length = this.#length;
    return fork;
  }
}
