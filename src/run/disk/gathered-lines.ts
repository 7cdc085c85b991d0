import { acquireBytes } from "../../text/lent-bytes.ts";
import { mostBytesPerUnit } from "../../text/utf8-bytes.ts";

/** The size of a block in bytes. A longer line gets a block of its own size. */
const blockSize = 256 * 1024;

/**
 * Collects lines as bytes until they are taken. Strings that live this long would be copied by the garbage collector.
 */
export class GatheredLines {
  #full: Buffer[] = [];
  #block: Buffer | undefined;
  /** The number of bytes that are used in the last block. */
  #end = 0;

  /**
   * Adds a line.
   *
   * @param line - The line without its line feed.
   */
  add(line: string): void {
    const most = line.length * mostBytesPerUnit + 1;
    if (this.#block === undefined || this.#end + most > this.#block.length) {
      this.#close();
      this.#block = acquireBytes(Math.max(most, blockSize));
    }
    this.#end += this.#block.write(line, this.#end);
    this.#block[this.#end++] = lineFeed;
  }

  /**
   * Adds lines as bytes, without copying them.
   *
   * @param lines - Complete lines in UTF-8, each with its line feed. Do not change them afterwards.
   */
  addBytes(lines: Buffer): void {
    if (lines.length === 0) return;
    this.#close();
    this.#full.push(lines);
  }

  /** Takes the collected lines: UTF-8 with line feeds, in borrowed blocks (see `acquireBytes()`) and those of `addBytes()`. */
  take(): readonly Buffer[] {
    this.#close();
    const blocks = this.#full;
    this.#full = [];
    return blocks;
  }

  #close(): void {
    if (this.#block !== undefined) this.#full.push(this.#block.subarray(0, this.#end));
    this.#block = undefined;
    this.#end = 0;
  }
}

const lineFeed = "\n".charCodeAt(0);
