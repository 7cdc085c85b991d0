import { isUtf8 } from "node:buffer";
import { safeCutIndex } from "../../secrets/redactor.ts";

/**
 * The number of bytes after the limit that are searched for the end of a secret. A secret that
 * crosses the limit is left out.
 */
const overlap = 16 * 1024;

/** Keeps the beginning of an output of any length. */
export class KeptOutput {
  readonly #limit: number;
  readonly #pieces: Buffer[] = [];
  #length = 0;

  /** @param limit - Maximum number of bytes to keep. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  take(piece: Buffer): void {
    const kept = piece.subarray(0, Math.max(0, this.#limit + overlap - this.#length));
    if (kept.length > 0) this.#pieces.push(kept);
    this.#length += piece.length;
  }

  /** Returns the kept output. Leaves out a character or a secret that the limit would cut. */
  read(): { readonly text: string; readonly omittedBytes: number; readonly isUtf8: boolean } {
    const all = Buffer.concat(this.#pieces);
    const bytes = this.#length <= this.#limit ? all : cutTo(all, this.#limit);
    return {
      text: bytes.toString("utf8"),
      omittedBytes: this.#length - bytes.length,
      isUtf8: isUtf8(bytes),
    };
  }
}

function cutTo(all: Buffer, limit: number): Buffer {
  const kept = all.subarray(0, limit);
  const bytes = kept.subarray(0, wholeLength(kept));
  const text = bytes.toString("utf8");
  const end = safeCutIndex(text + all.subarray(bytes.length).toString("utf8"), text.length);
  if (end === text.length) return bytes;
  return bytes.subarray(0, bytes.length - Buffer.byteLength(text.slice(end)));
}

/** Returns the length without an incomplete UTF-8 character at the end. */
function wholeLength(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    // This is a continuation byte: the character's first byte comes before it.
    if (byte >> 6 === 0b10) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
