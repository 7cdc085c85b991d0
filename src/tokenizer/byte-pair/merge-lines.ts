import { skipSpace, skipString } from "../../json/json-members.ts";

const quote = 0x22;
const comma = 0x2c;
const space = 0x20;
const lineFeed = 0x0a;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;

/**
 * The merges of a model in the form of `merges.txt`: a line for each, two spellings with a space between them.
 *
 * @param start - Where in the document their list stands: of lists of two spellings, or of texts that hold both.
 * @returns `undefined` where there is none, or lines could not say what it says: a spelling is empty or has
 *   a space or the end of a line in it, or a line would be taken for the comment that a file may begin with.
 */
export function writeMergeLines(bytes: Buffer, start: number): Buffer | undefined {
  if (bytes[start] !== openList) return undefined;
  const writer = new LineWriter(bytes, start + 1);
  return writer.writeAll() ? writer.lines() : undefined;
}

/** The comment that a file of merges may begin with; lines that begin so are skipped. */
const comment = Buffer.from("#version");

class LineWriter {
  readonly #bytes: Buffer;
  /** Escapes only shrink, and what parts two spellings in JSON is no shorter than a space. */
  readonly #lines: Buffer;
  #length = 0;
  /** Where the document is read. */
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.#lines = Buffer.allocUnsafe(bytes.length - start);
    this.at = start;
  }

  lines(): Buffer {
    return this.#lines.subarray(0, this.#length);
  }

  /** Whether all merges are written, up to the end of their list. */
  writeAll(): boolean {
    if (this.#takes(closeList)) return true;
    for (;;) {
      const lineStart = this.#length;
      if (!(this.#takes(openList) ? this.#writePair() : this.#writeSpelling(1))) return false;
      if (this.#lines[lineStart] === comment[0] && this.#isComment(lineStart)) return false;
      this.#lines[this.#length++] = lineFeed;
      if (this.#takes(closeList)) return true;
      if (!this.#takes(comma)) return false;
    }
  }

  #writePair(): boolean {
    if (!this.#writeSpelling(0) || !this.#takes(comma)) return false;
    this.#lines[this.#length++] = space;
    return this.#writeSpelling(0) && this.#takes(closeList);
  }

  /** Goes over white space, and over a byte if it is the next. */
  #takes(byte: number): boolean {
    this.at = skipSpace(this.#bytes, this.at);
    if (this.#bytes[this.at] !== byte) return false;
    this.at += 1;
    return true;
  }

  /** Copies the string that is next, if it has as many spaces as it may have. */
  #writeSpelling(spaceCount: 0 | 1): boolean {
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
    const spelling = readString(this.#bytes.toString("utf8", start, end));
    if (spelling === undefined) return false;
    this.at = end;
    this.#length += this.#lines.write(spelling, this.#length);
    const space = spelling.indexOf(" ");
    const spaces = space < 0 ? 0 : spelling.includes(" ", space + 1) ? 2 : 1;
    return spelling !== "" && !/[\n\r]/.test(spelling) && spaces === spaceCount;
  }

  #isComment(from: number): boolean {
    return this.#lines.subarray(from, from + comment.length).equals(comment);
  }
}

/** `undefined` where the text is no JSON. */
function readString(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
