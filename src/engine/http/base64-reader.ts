import type { BlobReader } from "./blob-cutter.ts";
import { ReplyProblem } from "./reply-reading.ts";

/** Sixteen characters are twelve bytes: whole bytes, and whole 32-bit numbers. */
const quantum = 16;

/** Settings of a `Base64Reader`. */
interface Base64Options {
  /** The member's name, for messages. */
  readonly name: string;
  /** Maximum number of bytes. */
  readonly limitBytes: number;
  /** Converts decoded bytes, a multiple of twelve except for the last ones. Default: keeps them. */
  readonly convert?: (bytes: Buffer) => Uint8Array;
}

/** Decodes base64 while it arrives. */
export class Base64Reader implements BlobReader {
  readonly #options: Base64Options;
  #carry = "";
  #charCount = 0;
  readonly #chunks: Uint8Array[] = [];

  constructor(options: Base64Options) {
    this.#options = options;
  }

  add(text: Buffer): void {
    const { name, limitBytes } = this.#options;
    this.#charCount += text.length;
    if (this.#charCount > Math.ceil(limitBytes / 3) * 4) {
      throw new ReplyProblem(`${name} has more than ${limitBytes} bytes`, "rows of this request");
    }
    const chars = this.#carry + text.toString("latin1");
    const end = chars.length - (chars.length % quantum);
    if (end > 0) this.#decode(chars.slice(0, end), end);
    this.#carry = chars.slice(end);
  }

  end(): void {
    const chars = this.#carry;
    this.#carry = "";
    if (chars.length % 4 !== 0) throw notBase64(this.#options.name);
    if (chars !== "") this.#decode(chars, chars.replace(/={1,2}$/, "").length);
  }

  /** Takes the decoded bytes out of the reader. */
  takeChunks(): readonly Uint8Array[] {
    return this.#chunks.splice(0);
  }

  /** Node skips characters that are not base64, so the number of bytes shows them. */
  #decode(chars: string, charCount: number): void {
    const bytes = Buffer.from(chars, "base64");
    const { name, convert } = this.#options;
    // In the last characters, a reply may have padding. Elsewhere, padding ends the bytes early.
    if (bytes.length !== Math.floor((charCount * 3) / 4)) throw notBase64(name);
    this.#chunks.push(convert === undefined ? bytes : convert(bytes));
  }
}

function notBase64(name: string): ReplyProblem {
  return new ReplyProblem(`${name} is not base64, or was cut off`, "complete base64");
}
