import path from "node:path";
import { UsageError } from "../../errors.ts";
import { releaseBytes, acquireBytes } from "../../text/lent-bytes.ts";
import { type Resolvers, withResolvers } from "../../async/with-resolvers.ts";
import { closedEarly } from "../schedule/closed-early.ts";
import { type EncodedLine, encodeLine } from "./encode-line.ts";
import { type FileFacts, type Files, type OpenFile, diskFiles, writeAll } from "./files.ts";
import { endLastLine } from "./last-line.ts";
import { readPlacedLines } from "./placed-lines.ts";
import { storageError } from "./storage-error.ts";

/** What a journal is opened with. */
export interface JournalOptions {
  readonly files?: Files;
  /** Asked before each write whether it may be made; throws where it may not. */
  readonly guard?: () => Promise<void>;
}

/** Lines that have their place, though they may still be made. */
interface Waiting {
  readonly lines: Promise<readonly EncodedLine[]>;
  readonly settle: Resolvers<void>;
}

/** Lines are handed to the system in blocks of up to this many bytes. */
const blockSize = 1024 * 1024;

/**
 * An append-only file of JSON lines. Lines that are handed in while a write is under way are written
 * and synced together (one sync for all of them), so that many episodes ending at once cost one
 * sync, and a line whose promise has resolved survives a crash of the machine.
 *
 * The first write that fails ends the journal: the file is cut back to its last whole line, and every
 * later line is refused for the same reason. A file that was moved, deleted or written to by
 * something else is noticed with the next line.
 */
export class JsonlJournal implements AsyncDisposable {
  readonly path: string;
  readonly #files: Files;
  readonly #file: OpenFile;
  readonly #guard: () => Promise<void>;
  readonly #identity: string;
  /** Up to here there are whole lines, and they are on the disk. */
  #size: number;
  #waiting: Waiting[] = [];
  #flushing: Promise<void> | undefined;
  #broken: { readonly reason: unknown } | undefined;
  #isClosed = false;

  private constructor(
    path: string,
    open: { file: OpenFile; facts: FileFacts; options: JournalOptions },
  ) {
    this.path = path;
    this.#file = open.file;
    this.#identity = open.facts.identity;
    this.#size = open.facts.size;
    this.#files = open.options.files ?? diskFiles;
    this.#guard = open.options.guard ?? (() => Promise.resolve());
  }

  /**
   * Opens the file for appending, creating it where it is absent. A torn last line, left by a crash
   * in the middle of a write, is cut off; one that lacks only its line feed is given it.
   *
   * @throws UsageError where the file cannot be opened.
   */
  static async open(name: string, options: JournalOptions = {}): Promise<JsonlJournal> {
    const { files = diskFiles } = options;
    // Whoever plays may change the working directory meanwhile.
    const file = path.resolve(name);
    let opened: OpenFile | undefined;
    try {
      opened = await files.open(file, "append");
      await endLastLine(opened);
      await files.syncFolder(path.dirname(file));
      const facts = await opened.facts();
      return new JsonlJournal(file, { file: opened, facts, options });
    } catch (error) {
      await opened?.close().catch(() => {});
      throw storageError("open", file, error);
    }
  }

  /**
   * Appends one line; resolves once it is on the disk.
   *
   * @throws UsageError where the disk refuses it or refused one before.
   */
  async append(value: unknown): Promise<void> {
    await this.#add(encodeLine(value, acquireBytes).then((line) => [line]));
  }

  /**
   * Appends lines that stay together; resolves once they are on the disk. Their bytes are the journal's now: where they
   * were lent (see `acquireBytes()`), it gives them back.
   */
  async appendLines(lines: readonly EncodedLine[]): Promise<void> {
    await this.#add(lines);
  }

  /** The order of the calls is that of the lines, however long each takes to be made. */
  async #add(made: readonly EncodedLine[] | Promise<readonly EncodedLine[]>): Promise<void> {
    const settle = withResolvers();
    const lines = Promise.resolve(made).catch((reason: unknown) => {
      settle.reject(reason);
      return [];
    });
    this.#waiting.push({ lines, settle });
    this.#flushing ??= this.#flush();
    await settle.promise;
  }

  /**
   * The lines that are in it by now, one after the other, without their line feeds.
   *
   * @throws UsageError where they cannot be read.
   */
  async *lines(): AsyncGenerator<string> {
    try {
      for await (const { text } of readPlacedLines(this.#files, this.path)) yield text;
    } catch (error) {
      throw storageError("read", this.path, error);
    }
  }

  async #flush(): Promise<void> {
    // One tick, so that episodes which end together share a sync.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      const made = await Promise.all(batch.map(({ lines }) => lines));
      await this.#write(made.flat());
      for (const { settle } of batch) {
        if (this.#broken === undefined) settle.resolve();
        else settle.reject(this.#broken.reason);
      }
    }
    this.#flushing = undefined;
  }

  async #write(lines: readonly EncodedLine[]): Promise<void> {
    if (this.#broken !== undefined) return;
    try {
      await this.#guard();
    } catch (reason) {
      // The file is somebody else's now: it stays as it is.
      this.#broken = { reason };
      return;
    }
    if (this.#isClosed) {
      this.#broken = { reason: closedEarly(path.dirname(this.path)) };
      return;
    }
    try {
      let end = this.#size;
      for (const block of mergeBlocks(lines.flatMap(({ blocks }) => blocks))) {
        await writeAll(this.#file, block, end);
        end += block.length;
        releaseBytes(block);
      }
      await this.#file.sync();
      await this.#assertOwn(end);
      this.#size = end;
    } catch (error) {
      this.#broken = { reason: storageError("write", this.path, error) };
      // A file that something else writes to is not ours to cut.
      if (!(error instanceof UsageError)) await this.#cutBack();
    }
  }

  /** What is synced counts only if it is found again under the file's name. */
  async #assertOwn(size: number): Promise<void> {
    const facts = await this.#files.facts(this.path);
    const isOwn = facts?.identity === this.#identity && facts.size === size;
    if (isOwn) return;
    const what = facts === undefined ? "it was moved or deleted" : "something else writes there";
    throw new UsageError(
      `Cannot go on writing ${this.path}: ${what}; look what it was, then start the same command again`,
    );
  }

  async #cutBack(): Promise<void> {
    try {
      const { size } = await this.#file.facts();
      if (size <= this.#size) return;
      await this.#file.truncate(this.#size);
      await this.#file.sync();
    } catch {
      // Opening the file again cuts it as well; the reason to tell is the first one.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#flushing;
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#file.close();
  }
}

/**
 * Joins small blocks, so that a thousand short lines are a few writes. What is joined is given back, and what comes of
 * it is to be given back, where it was lent.
 */
function* mergeBlocks(blocks: readonly Uint8Array[]): Generator<Uint8Array> {
  let merged: Uint8Array[] = [];
  let length = 0;
  for (const block of blocks) {
    if (length + block.length > blockSize && length > 0) {
      yield joined(merged, length);
      merged = [];
      length = 0;
    }
    merged.push(block);
    length += block.length;
  }
  if (length > 0) yield joined(merged, length);
}

function joined(blocks: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = blocks;
  if (only !== undefined && blocks.length === 1) return only;
  const whole = acquireBytes(length);
  let end = 0;
  for (const block of blocks) {
    whole.set(block, end);
    end += block.length;
    releaseBytes(block);
  }
  return whole;
}
