import { isDeepStrictEqual } from "node:util";
import { holdsMark, moveLastBytes } from "../../run/disk/file-mark.ts";
import {
  type FileFacts,
  type Files,
  type OpenFile,
  readBytes,
  withFile,
} from "../../run/disk/files.ts";
import type { LineRange } from "../../run/disk/line-ranges.ts";

/** A line that a follower has read. */
interface FollowedLine extends LineRange {
  /** The line's first bytes, at most as many as the follower keeps. */
  readonly head: Buffer;
}

/** Options for following a file. */
interface FollowOptions {
  readonly files: Files;
  /** The number of bytes of each line to keep and to pass to `onLine`. */
  readonly headLength: number;
  /** Called with each complete line, in order. */
  readonly onLine: (line: FollowedLine) => void;
  /** Called if another file has replaced the followed one, so that all lines read before are invalid. */
  readonly onReset: () => void;
}

const lineFeed = 0x0a;
const blockSize = 1024 * 1024;

/**
 * Follows a file of any size that grows by complete lines. Starts again if the file was replaced or
 * cut.
 */
export class LineFollower {
  readonly path: string;
  readonly #options: FollowOptions;
  #identity: string | undefined;
  /** The facts about the file when it was last read to its end. */
  #seen: FileFacts | undefined;
  /**
   * True if the file had the same state at the previous read. Writes within one clock tick have the
   * same time.
   */
  #isStill = false;
  /** The offset after the last complete line. The rest may be incomplete and is read again. */
  #end = 0;
  #lastBytes: Buffer = Buffer.alloc(0);

  constructor(path: string, options: FollowOptions) {
    this.path = path;
    this.#options = options;
  }

  /** Reads the new lines. Does nothing if the file does not exist. */
  async read(): Promise<void> {
    const { files } = this.#options;
    const facts = await files.facts(this.path);
    if (facts === undefined) this.#reset();
    if (facts === undefined || (this.#isStill && isDeepStrictEqual(facts, this.#seen))) return;
    await withFile(files, this.path, async (file) => {
      const opened = await file.facts();
      if (!(await this.#goesOn(file))) this.#reset();
      this.#identity = opened.identity;
      await this.#readOn(file, opened.size);
      this.#isStill = isDeepStrictEqual(opened, this.#seen);
      this.#seen = opened;
    });
  }

  /** Returns the bytes of a line that was passed to `onLine`. */
  async lineAt({ start, end }: LineRange): Promise<Buffer> {
    const bytes = await withFile(this.#options.files, this.path, (file) =>
      readBytes(file, { start, end }),
    );
    return bytes ?? Buffer.alloc(0);
  }

  /** Reads lines that were passed to `onLine`, in this order. Opens the file once. */
  async readEach(ranges: readonly LineRange[], onLine: (line: Buffer, place: number) => void) {
    await withFile(this.#options.files, this.path, async (file) => {
      for (const [place, range] of ranges.entries()) onLine(await readBytes(file, range), place);
    });
  }

  async #goesOn(file: OpenFile): Promise<boolean> {
    if (this.#identity === undefined) return true;
    const mark = { identity: this.#identity, end: this.#end, lastBytes: this.#lastBytes };
    return await holdsMark(file, mark);
  }

  #reset(): void {
    if (this.#identity === undefined) return;
    this.#identity = undefined;
    this.#seen = undefined;
    this.#end = 0;
    this.#lastBytes = Buffer.alloc(0);
    this.#options.onReset();
  }

  async #readOn(file: OpenFile, size: number): Promise<void> {
    const { headLength, onLine } = this.#options;
    const block = Buffer.allocUnsafe(Math.max(1, Math.min(blockSize, size - this.#end)));
    const head = new LineHead(headLength);
    let position = this.#end;
    let lastBytes = this.#lastBytes;
    for (;;) {
      const length = await file.read(block, position);
      if (length === 0) return;
      const bytes = block.subarray(0, length);
      let from = 0;
      for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, from)) {
        head.add(bytes.subarray(from, at));
        const line = { head: head.take(), start: this.#end, end: position + at };
        if (line.end > line.start) onLine(line);
        this.#end = line.end + 1;
        from = at + 1;
      }
      if (from > 0) this.#lastBytes = moveLastBytes(lastBytes, bytes.subarray(0, from));
      head.add(bytes.subarray(from));
      lastBytes = moveLastBytes(lastBytes, bytes);
      position += length;
    }
  }
}

/** The first bytes of a line that arrives in several blocks. */
class LineHead {
  readonly #most: number;
  #parts: Buffer[] = [];
  #length = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(bytes: Buffer): void {
    const room = this.#most - this.#length;
    if (room <= 0 || bytes.length === 0) return;
    // The block is used again.
    const kept = Buffer.from(bytes.subarray(0, room));
    this.#parts.push(kept);
    this.#length += kept.length;
  }

  take(): Buffer {
    const head = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    return head;
  }
}
