import { type Files, type OpenFile, readBlocks, readBytes } from "./files.ts";

/** The position of a line in its file. */
export interface LinePlace {
  /** The line's number, from 1. */
  readonly line: number;
  /** The position of the line's first byte in the file. `length` is the number of bytes without the line feed. */
  readonly offset: number;
  readonly length: number;
}

/** A line of a file with its position. */
export interface PlacedLine {
  readonly text: string;
  readonly place: LinePlace;
}

const lineFeed = 0x0a;

/**
 * Reads the non-empty lines of a file with their positions. The text after the last line feed counts as a line.
 *
 * @param start - The byte at which reading starts, at the beginning of a line; lines are numbered from there.
 * @throws the system's own error if the file does not exist or cannot be read.
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
      // The block is reused, so the rest of it is copied.
      if (from < block.length) parts.push(Buffer.from(block.subarray(from)));
    }
    const last = parts.length === 0 ? undefined : cut();
    if (last !== undefined) yield last;
  } finally {
    await file.close();
  }
}

/** Reads the lines of a file by position, in any order. */
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
