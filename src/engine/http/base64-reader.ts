import type { BlobReader } from "./blob-cutter.ts";
import { ReplyProblem } from "./reply-reading.ts";

/** The number of characters that are decoded together. 64 characters are 48 bytes: twelve 32-bit numbers. */
const quantum = 64;

/** Settings of a `Base64Reader`. */
interface Base64Options {
  /** The member's name, for messages. */
  readonly name: string;
  /** Maximum number of bytes. */
  readonly limitBytes: number;
  /**
   * Converts decoded bytes, a multiple of 48 except for the last ones, and writes them to a place of at least the same
   * size, which begins at a multiple of twelve. Returns the number of written bytes. Default: copies the bytes.
   */
  readonly convert?: (bytes: Uint8Array, to: Uint8Array) => number;
}

/** Size in bytes of the blocks that decoded bytes are collected in. */
const blockBytes = 2 ** 18;

/** Decoded bytes before they are converted. */
let scratch = Buffer.alloc(0);

/** Decodes base64 while it arrives. */
export class Base64Reader implements BlobReader {
  readonly #options: Base64Options;
  /** At most a quantum. */
  #carry = "";
  #charCount = 0;
  readonly #blocks: Uint8Array[] = [];
  #block = Buffer.alloc(0);
  /** Number of bytes in the block. */
  #filled = 0;

  constructor(options: Base64Options) {
    this.#options = options;
  }

  add(text: Buffer): void {
    const { name, limitBytes } = this.#options;
    this.#charCount += text.length;
    if (this.#charCount > Math.ceil(limitBytes / 3) * 4) {
      throw new ReplyProblem(`${name} has more than ${limitBytes} bytes`, "rows of this request");
    }
    const total = this.#carry.length + text.length;
    // The last characters may have padding, so they wait for the end.
    const usable = Math.floor((total - 1) / quantum) * quantum;
    if (usable === 0) {
      this.#carry += text.toString("latin1");
      return;
    }
    let first = 0;
    if (this.#carry !== "") {
      first = quantum - this.#carry.length;
      this.#decode(this.#carry + text.toString("latin1", 0, first), quantum);
    }
    const end = text.length - (total - usable);
    if (end > first) this.#decode(text.toString("latin1", first, end), end - first);
    this.#carry = text.toString("latin1", end);
  }

  end(): void {
    const chars = this.#carry;
    this.#carry = "";
    if (chars.length % 4 !== 0) throw notBase64(this.#options.name);
    if (chars !== "") this.#decode(chars, chars.replace(/={1,2}$/, "").length);
  }

  /** Takes the bytes out of the reader. */
  takeChunks(): readonly Uint8Array[] {
    return [...this.#blocks.splice(0), this.#block.subarray(0, this.#filled)];
  }

  /**
   * Decodes characters. Node skips characters that are not base64, and ends at padding, so the number of bytes shows
   * both faults.
   */
  #decode(chars: string, charCount: number): void {
    const { name, convert } = this.#options;
    const size = Math.floor((charCount * 3) / 4);
    if (this.#block.length - this.#filled < size) this.#startBlock(size);
    if (convert === undefined) {
      if (this.#block.write(chars, this.#filled, size, "base64") !== size) throw notBase64(name);
      this.#filled += size;
      return;
    }
    if (scratch.length < size) scratch = Buffer.allocUnsafeSlow(2 * size);
    if (scratch.write(chars, 0, size, "base64") !== size) throw notBase64(name);
    this.#filled += convert(scratch.subarray(0, size), this.#block.subarray(this.#filled));
  }

  #startBlock(size: number): void {
    if (this.#filled > 0) this.#blocks.push(this.#block.subarray(0, this.#filled));
    this.#block = Buffer.allocUnsafeSlow(Math.max(blockBytes, size));
    this.#filled = 0;
  }
}

function notBase64(name: string): ReplyProblem {
  return new ReplyProblem(`${name} is not base64, or was cut off`, "complete base64");
}
