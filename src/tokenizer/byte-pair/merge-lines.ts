import { skipSpace, skipString } from "../../json/json-members.ts";

const quote = 0x22;
const comma = 0x2c;
const space = 0x20;
const lineFeed = 0x0a;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;

/**
 * Converts the merges of a model to the format of `merges.txt`: a line for each, two token texts
 * with a space between them.
 *
 * @param start - The position of their list in the document. Its items are lists of two token
 *   texts, or texts that contain both.
 * @returns `undefined` if there is no list, if a token text is empty or contains a space or a line
 *   end, or if a line would look like the comment at the start of a file.
 */
export function writeMergeLines(bytes: Buffer, start: number): Buffer | undefined {
  if (bytes[start] !== openList) return undefined;
  const writer = new LineWriter(bytes, start + 1);
  return writer.writeAll() ? writer.lines() : undefined;
}

/** The comment at the start of a file of merges. The library skips lines that start with it. */
const comment = Buffer.from("#version");

class LineWriter {
  readonly #bytes: Buffer;
  /** Large enough: escapes only shrink, and the separator in JSON is longer than a space. */
  readonly #lines: Buffer;
  #length = 0;
  /** The current position in the document. */
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.#lines = Buffer.allocUnsafe(bytes.length - start);
    this.at = start;
  }

  lines(): Buffer {
    return this.#lines.subarray(0, this.#length);
  }

  /** Writes all merges up to the end of their list. False if one cannot be written. */
  writeAll(): boolean {
    if (this.#skipIf(closeList)) return true;
    for (;;) {
      const lineStart = this.#length;
      if (!(this.#skipIf(openList) ? this.#writePair() : this.#writeTokenText(1))) return false;
      if (this.#lines[lineStart] === comment[0] && this.#isComment(lineStart)) return false;
      this.#lines[this.#length++] = lineFeed;
      if (this.#skipIf(closeList)) return true;
      if (!this.#skipIf(comma)) return false;
    }
  }

  #writePair(): boolean {
    if (!this.#writeTokenText(0) || !this.#skipIf(comma)) return false;
    this.#lines[this.#length++] = space;
    return this.#writeTokenText(0) && this.#skipIf(closeList);
  }

  /** Skips white space, and then `byte` if it is next. */
  #skipIf(byte: number): boolean {
    this.at = skipSpace(this.#bytes, this.at);
    if (this.#bytes[this.at] !== byte) return false;
    this.at += 1;
    return true;
  }

  /** Copies the next string. False unless it contains exactly `spaceCount` spaces. */
  #writeTokenText(spaceCount: 0 | 1): boolean {
    const bytes = this.#bytes;
    const lines = this.#lines;
    const start = skipSpace(bytes, this.at);
    if (bytes[start] !== quote) return false;
    const from = this.#length;
    let spaces = 0;
    let length = from;
    let at = start + 1;
    for (; ; at++) {
      const byte = bytes[at];
      if (byte === quote) break;
      if (byte === undefined || byte < space) return false;
      if (byte === backslash) return this.#writeEscaped(start, spaceCount);
      if (byte === space) spaces += 1;
      lines[length++] = byte;
    }
    this.at = at + 1;
    this.#length = length;
    return length > from && spaces === spaceCount;
  }

  #writeEscaped(start: number, spaceCount: number): boolean {
    const end = skipString(this.#bytes, start);
    const tokenText = readString(this.#bytes.toString("utf8", start, end));
    if (tokenText === undefined) return false;
    this.at = end;
    this.#length += this.#lines.write(tokenText, this.#length);
    const space = tokenText.indexOf(" ");
    const spaces = space < 0 ? 0 : tokenText.includes(" ", space + 1) ? 2 : 1;
    return tokenText !== "" && !/[\n\r]/.test(tokenText) && spaces === spaceCount;
  }

  #isComment(from: number): boolean {
    return this.#lines.subarray(from, from + comment.length).equals(comment);
  }
}

/** Parses a JSON string, or returns `undefined`. */
function readString(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
