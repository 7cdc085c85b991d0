import { createHash, type Hash } from "node:crypto";

/**
 * SHA-256 over token ids as little-endian 32-bit integers, kept up to date id by id, so that a
 * ledger can be asked for the hash of everything so far at the cost of a copy of the hash's state.
 */
export class RollingHash {
  readonly #hash: Hash = createHash("sha256");

  append(ids: readonly number[]): void {
    this.#hash.update(littleEndian(ids));
  }

  /** The hash of everything appended so far: the first 16 of its 64 hexadecimal digits. */
  digest(): string {
    return this.#hash.copy().digest("hex").slice(0, 16);
  }
}

/** The hash of a whole list of ids, as `RollingHash` gives it. */
export function hashIds(ids: readonly number[]): string {
  return createHash("sha256").update(littleEndian(ids)).digest("hex").slice(0, 16);
}

function littleEndian(ids: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(ids.length * 4);
  for (let index = 0; index < ids.length; index++) bytes.writeInt32LE(ids[index]!, index * 4);
  return bytes;
}
