const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Splits a stream of bytes into lines without line ends. */
export class LineSplitter {
  readonly #takesReturns: boolean;
  #parts: Buffer[] = [];
  #openLength = 0;
  #isAfterReturn = false;

  /**
   * @param options.takesReturns - True if a carriage return also ends a line, as in a stream of
   *   events. Default: only a line feed does.
   */
  constructor({ takesReturns = false }: { readonly takesReturns?: boolean } = {}) {
    this.#takesReturns = takesReturns;
  }

  /** The number of bytes after the last line end. */
  get openLength(): number {
    return this.#openLength;
  }

  /** Returns the lines that end in a chunk. */
  add(chunk: Buffer): readonly Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    let feed = -1;
    let back = -1;
    for (;;) {
      // A carriage return with a line feed is one line end.
      if (this.#isAfterReturn && start < chunk.length) {
        this.#isAfterReturn = false;
        if (chunk[start] === lineFeed) start += 1;
      }
      if (feed < start) feed = indexIn(chunk, lineFeed, start);
      if (back < start)
        back = this.#takesReturns ? indexIn(chunk, carriageReturn, start) : Infinity;
      const end = Math.min(feed, back);
      if (end === Infinity) break;
      lines.push(Buffer.concat([...this.#parts, chunk.subarray(start, end)]));
      this.#parts = [];
      this.#openLength = 0;
      this.#isAfterReturn = end === back;
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#parts.push(chunk.subarray(start));
      this.#openLength += chunk.length - start;
    }
    return lines;
  }

  /** Returns the bytes after the last line end. */
  end(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

function indexIn(chunk: Buffer, byte: number, start: number): number {
  const index = chunk.indexOf(byte, start);
  return index === -1 ? Infinity : index;
}
