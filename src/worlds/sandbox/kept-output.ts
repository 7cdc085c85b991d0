import { isUtf8 } from "node:buffer";

/** The beginning of an output of any length. */
export class KeptOutput {
  readonly #limit: number;
  readonly #pieces: Buffer[] = [];
  #length = 0;
  #omittedBytes = 0;

  /** @param limit - Bytes that are kept. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  take(piece: Buffer): void {
    const kept = piece.subarray(0, Math.max(0, this.#limit - this.#length));
    if (kept.length > 0) this.#pieces.push(kept);
    this.#length += kept.length;
    this.#omittedBytes += piece.length - kept.length;
  }

  /** Returns what was kept. A character that the limit cuts is left out whole. */
  read(): { readonly text: string; readonly omittedBytes: number; readonly isUtf8: boolean } {
    const all = Buffer.concat(this.#pieces);
    const bytes = this.#omittedBytes === 0 ? all : all.subarray(0, wholeLength(all));
    return {
      text: bytes.toString("utf8"),
      omittedBytes: this.#omittedBytes + all.length - bytes.length,
      isUtf8: isUtf8(bytes),
    };
  }
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
