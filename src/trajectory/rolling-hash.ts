import { createHash, hash, type Hash } from "node:crypto";
import { endianness } from "node:os";
import { ownBug } from "../errors.ts";
import { isTokenId, largestTokenId, type TokenIds } from "../engine/token-id.ts";

/**
 * A running SHA-256 of token ids as little-endian 32-bit integers. A hash of all ids so far costs a copy of the hash's
 * state.
 */
export class RollingHash {
  readonly #hash: Hash = createHash("sha256");

  /**
   * Appends ids to the hashed ones.
   *
   * @param count - Number of ids to append, from the first. Default: all.
   * @throws InvariantError if a value of an array is not a token id (see `isTokenId()`). An `Int32Array` is not checked.
   */
  append(ids: TokenIds, count = ids.length): void {
    this.#hash.update(littleEndian(ids, count));
  }

  /** Returns the hash of all ids so far, followed by `more`: 16 hexadecimal digits. */
  digest(more: TokenIds = []): string {
    const copy = this.#hash.copy();
    if (more.length > 0) copy.update(littleEndian(more));
    return shown(copy.digest("hex"));
  }
}

/**
 * Returns the hash of a list of ids: the first 16 of the 64 hexadecimal digits.
 *
 * @throws InvariantError if a value of an array is not a token id (see `isTokenId()`). An `Int32Array` is not checked.
 */
export function hashIds(ids: TokenIds): string {
  return shown(hash("sha256", littleEndian(ids), "hex"));
}

/** Returns the first 16 digits. `join()`, because a `slice()` keeps all 64 digits in memory. */
function shown(digits: string): string {
  return [digits.slice(0, 8), digits.slice(8, 16)].join("");
}

const isBigEndian = endianness() === "BE";

/** Size of the reused buffer, in ids. It fits turns and all but the longest prompts. */
const keptLength = 16_384;
const keptWords = new Int32Array(keptLength);

/** Returns the ids' bytes: of an `Int32Array` the memory itself, otherwise valid until the next call. */
function littleEndian(ids: TokenIds, count = ids.length): Uint8Array {
  if (ids instanceof Int32Array && !isBigEndian) {
    return new Uint8Array(ids.buffer, ids.byteOffset, count * ids.BYTES_PER_ELEMENT);
  }
  const words = count <= keptLength ? keptWords : new Int32Array(count);
  for (let index = 0; index < count; index++) {
    const id = ids[index];
    if (!isTokenId(id)) {
      throw ownBug(
        `cannot hash ${id} at ${index}: expected a whole number from 0 to ${largestTokenId}`,
      );
    }
    words[index] = id;
  }
  const bytes = new Uint8Array(words.buffer, 0, count * words.BYTES_PER_ELEMENT);
  if (isBigEndian) Buffer.from(bytes.buffer, 0, bytes.length).swap32();
  return bytes;
}
