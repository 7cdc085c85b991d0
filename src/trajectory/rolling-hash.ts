import { createHash, hash, type Hash } from "node:crypto";
import { endianness } from "node:os";
import { ownBug } from "../errors.ts";
import { isTokenId, largestTokenId } from "../engine/token-id.ts";

/**
 * SHA-256 over token ids as little-endian 32-bit integers, kept up to date id by id, so that a
 * ledger can be asked for the hash of everything so far at the cost of a copy of the hash's state.
 */
export class RollingHash {
  readonly #hash: Hash = createHash("sha256");

  /**
   * @param count - How many of the ids, from the first. Default: all.
   * @throws InvariantError where a value is no token id (see `isTokenId()`).
   */
  append(ids: readonly number[], count = ids.length): void {
    this.#hash.update(littleEndian(ids, count));
  }

  /** The hash of everything appended so far, and of `more` behind it: 16 hexadecimal digits. */
  digest(more: readonly number[] = []): string {
    const copy = this.#hash.copy();
    if (more.length > 0) copy.update(littleEndian(more));
    return shown(copy.digest("hex"));
  }
}

/**
 * The hash of a whole list of ids, as `RollingHash` gives it: the first 16 of the 64 hexadecimal digits.
 *
 * @throws InvariantError where a value is no token id (see `isTokenId()`).
 */
export function hashIds(ids: readonly number[]): string {
  return shown(hash("sha256", littleEndian(ids), "hex"));
}

/** The first 16 of the 64 hexadecimal digits. A part of that length would keep the whole text; what is joined does not. */
function shown(digits: string): string {
  return [digits.slice(0, 8), digits.slice(8, 16)].join("");
}

const isBigEndian = endianness() === "BE";

/** Ids for which there is room that is used again and again: a turn's, and all but the longest prompts. */
const keptLength = 16_384;
const keptWords = new Int32Array(keptLength);

/** The ids' bytes, which are good until the next call. */
function littleEndian(ids: readonly number[], count = ids.length): Uint8Array {
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
