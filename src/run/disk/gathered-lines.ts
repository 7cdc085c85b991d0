import { acquireBytes } from "../../text/lent-bytes.ts";
import { mostBytesPerUnit } from "../../text/utf8-bytes.ts";

/** Bytes of a block; of a longer line, as many as it takes. */
const blockSize = 256 * 1024;

/**
 * Gathers lines as bytes until they are taken. As texts they would be garbage by then that the collector has
 * copied from one place to another.
 */
export class GatheredLines {
  #full: Buffer[] = [];
  #block: Buffer | undefined;
  /** Where the block's lines end. */
  #end = 0;

  /** @param line - Without its line feed. */
  add(line: string): void {
    const most = line.length * mostBytesPerUnit + 1;
    if (this.#block === undefined || this.#end + most > this.#block.length) {
      this.#close();
      this.#block = acquireBytes(Math.max(most, blockSize));
    }
    this.#end += this.#block.write(line, this.#end);
    this.#block[this.#end++] = lineFeed;
  }

  /** The lines since the last time: UTF-8 with their line feeds, in blocks that are lent (see `acquireBytes()`). */
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
