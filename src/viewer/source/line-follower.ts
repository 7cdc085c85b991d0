import { type FileFacts, type Files, readBytes, withFile } from "../../run/files.ts";
import type { LineRange } from "../../run/line-ranges.ts";

/** A line that a follower came by. */
export interface FollowedLine extends LineRange {
  /** Its first bytes, at most as many as the follower keeps. */
  readonly head: Buffer;
}

/** How a file is followed. */
export interface FollowOptions {
  readonly files: Files;
  /** How many bytes of each line are kept, and shown to `onLine`. */
  readonly headLength: number;
  /** Told of each whole line, in order. */
  readonly onLine: (line: FollowedLine) => void;
  /** Told that the file is another one: what was read before holds no longer. */
  readonly onReset: () => void;
}

const lineFeed = 0x0a;
const blockSize = 1024 * 1024;

/**
 * Reads a file that grows by whole lines, whatever its size, and remembers how far it has read. A file
 * that was put in its place, or cut, is read from its start again.
 */
export class LineFollower {
  readonly path: string;
  readonly #options: FollowOptions;
  #identity: string | undefined;
  /** Where the first line begins that is not whole yet. */
  #lineStart = 0;
  #position = 0;
  #head: Buffer[] = [];
  #headLength = 0;

  constructor(path: string, options: FollowOptions) {
    this.path = path;
    this.#options = options;
  }

  /** Reads what there is to read; none where the file is not there. */
  async read(): Promise<void> {
    const { files } = this.#options;
    const facts = await files.facts(this.path);
    if (facts === undefined || this.#isOther(facts)) this.#reset();
    if (facts === undefined || facts.size === this.#position) return;
    this.#identity = facts.identity;
    await withFile(files, this.path, async (file) => {
      const block = Buffer.allocUnsafe(Math.min(blockSize, facts.size - this.#position));
      for (;;) {
        const length = await file.read(block, this.#position);
        if (length === 0) return;
        this.#take(block.subarray(0, length));
      }
    });
  }

  /** The bytes of a line that was told of. */
  async lineAt({ start, end }: LineRange): Promise<Buffer> {
    const bytes = await withFile(this.#options.files, this.path, (file) =>
      readBytes(file, { start, end }),
    );
    return bytes ?? Buffer.alloc(0);
  }

  #isOther({ identity, size }: FileFacts): boolean {
    return this.#identity !== undefined && (identity !== this.#identity || size < this.#position);
  }

  #reset(): void {
    if (this.#identity === undefined) return;
    this.#identity = undefined;
    this.#lineStart = 0;
    this.#position = 0;
    this.#head = [];
    this.#headLength = 0;
    this.#options.onReset();
  }

  #take(bytes: Buffer): void {
    let from = 0;
    for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, from)) {
      this.#keep(bytes.subarray(from, at));
      const end = this.#position + at;
      const head = this.#head.length === 1 ? this.#head[0]! : Buffer.concat(this.#head);
      this.#head = [];
      this.#headLength = 0;
      if (end > this.#lineStart) this.#options.onLine({ head, start: this.#lineStart, end });
      this.#lineStart = end + 1;
      from = at + 1;
    }
    this.#keep(bytes.subarray(from));
    this.#position += bytes.length;
  }

  #keep(bytes: Buffer): void {
    const room = this.#options.headLength - this.#headLength;
    if (room <= 0 || bytes.length === 0) return;
    // The block is used again.
    const kept = Buffer.from(bytes.subarray(0, room));
    this.#head.push(kept);
    this.#headLength += kept.length;
  }
}
