/** Maximum length of a line, in bytes. */
export const maxLineBytes = 16 * 2 ** 20;

/** Splits a byte stream into lines. Calls `onLong` for a line that exceeds the limit, and takes nothing after it. */
export class MessageLines {
  readonly #onLine: (line: string) => void;
  readonly #onLong: () => void;
  /** The pieces of a line that has not ended. */
  #pieces: Buffer[] = [];
  #length = 0;

  constructor(on: { readonly line: (line: string) => void; readonly long: () => void }) {
    this.#onLine = on.line;
    this.#onLong = on.long;
  }

  take(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
      this.#keep(bytes.subarray(start, end));
      if (this.#length > maxLineBytes) return;
      const line = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
      this.#pieces = [];
      this.#length = 0;
      start = end + 1;
      this.#onLine(line.toString("latin1"));
    }
    if (start < bytes.length) this.#keep(bytes.subarray(start));
  }

  #keep(piece: Buffer): void {
    if (this.#length > maxLineBytes) return;
    this.#length += piece.length;
    if (this.#length > maxLineBytes) {
      this.#pieces = [];
      this.#onLong();
    } else this.#pieces.push(piece);
  }
}
