import { isUtf8 } from "node:buffer";
import { safeCutIndex } from "../../secrets/redactor.ts";

/**
 * The number of bytes after the limit in which to look for the end of a secret that the limit cuts.
 */
const overlap = 16 * 1024;

/** The beginning of an output of any length. */
export class KeptOutput {
  readonly #limit: number;
  readonly #pieces: Buffer[] = [];
  #length = 0;

  /** @param limit - Bytes that are kept. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  take(piece: Buffer): void {
    const kept = piece.subarray(0, Math.max(0, this.#limit + overlap - this.#length));
    if (kept.length > 0) this.#pieces.push(kept);
    this.#length += piece.length;
  }

  /** Returns what was kept. A character or a secret that the limit cuts is left out whole. */
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

/** Length without a UTF-8 character that begins at the end and has too few bytes. */
function wholeLength(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    // A byte within a character: its first one comes before.
    if (byte >> 6 === 0b10) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
