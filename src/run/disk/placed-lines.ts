import { type Files, type OpenFile, readBlocks, readBytes } from "./files.ts";

/** Where a line stands in its file. */
export interface LinePlace {
  /** 1-based. */
  readonly line: number;
  /** In bytes, as is `length`, which does not count the line feed. */
  readonly offset: number;
  readonly length: number;
}

/** A line of a file, and where it stands. */
export interface PlacedLine {
  readonly text: string;
  readonly place: LinePlace;
}

const lineFeed = 0x0a;

/**
 * The lines of a file that are not empty, with their places; what follows the last line feed is one too.
 *
 * @param start - The byte from which on to read, where a line begins; lines are counted from there.
 * @throws the system's own error, where there is no such file or it cannot be read.
 */
export async function* readPlacedLines(
  files: Files,
  path: string,
  start = 0,
): AsyncGenerator<PlacedLine> {
  let parts: Buffer[] = [];
  let offset = start;
  let line = 0;
  const cut = (): PlacedLine | undefined => {
    const bytes = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
    parts = [];
    const place = { line: ++line, offset, length: bytes.length };
    offset += bytes.length + 1;
    const text = bytes.toString("utf8");
    return text.trim() === "" ? undefined : { text, place };
  };
  const file = await files.open(path, "read");
  try {
    for await (const block of readBlocks(file, start)) {
      let from = 0;
      for (let end = block.indexOf(lineFeed); end >= 0; end = block.indexOf(lineFeed, from)) {
        parts.push(block.subarray(from, end));
        const found = cut();
        if (found !== undefined) yield found;
        from = end + 1;
      }
      // The block is used again: what is left of it is copied.
      if (from < block.length) parts.push(Buffer.from(block.subarray(from)));
    }
    const last = parts.length === 0 ? undefined : cut();
    if (last !== undefined) yield last;
  } finally {
    await file.close();
  }
}

/** A file whose lines are read again by their places, in any order. */
export class LineReader implements AsyncDisposable {
  readonly #file: OpenFile;

  private constructor(file: OpenFile) {
    this.#file = file;
  }

  static async open(files: Files, path: string): Promise<LineReader> {
    return new LineReader(await files.open(path, "read"));
  }

  async read({ offset, length }: LinePlace): Promise<string> {
    const bytes = await readBytes(this.#file, { start: offset, end: offset + length });
    return bytes.toString("utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
