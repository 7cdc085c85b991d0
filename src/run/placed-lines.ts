import { createReadStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";

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
 */
export async function* readPlacedLines(file: string, start = 0): AsyncGenerator<PlacedLine> {
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
  for await (const chunk of createReadStream(file, { start }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, from)) {
      parts.push(chunk.subarray(from, end));
      const found = cut();
      if (found !== undefined) yield found;
      from = end + 1;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  }
  const last = parts.length === 0 ? undefined : cut();
  if (last !== undefined) yield last;
}

/** A file whose lines are read again by their places, in any order. */
export class LineReader implements AsyncDisposable {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(file: string): Promise<LineReader> {
    return new LineReader(await open(file, "r"));
  }

  async read({ offset, length }: LinePlace): Promise<string> {
    const bytes = Buffer.allocUnsafe(length);
    const { bytesRead } = await this.#file.read(bytes, 0, length, offset);
    return bytes.toString("utf8", 0, bytesRead);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}
