import path from "node:path";
import { UsageError } from "../../errors.ts";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { type Resolvers, withResolvers } from "../../async/with-resolvers.ts";
import { closedEarly } from "./closed-early.ts";
import { type EncodedLine, encodeLine } from "./encode-line.ts";
import { type FileFacts, type Files, type OpenFile, diskFiles } from "./files.ts";
import { endLastLine } from "./last-line.ts";
import { readPlacedLines } from "./placed-lines.ts";
import { storageError } from "./storage-error.ts";
import { writeBlocks } from "./write-blocks.ts";

/** Options of a journal. */
export interface JournalOptions {
  readonly files?: Files;
  /** Called before each write. If it throws, the line is not written. */
  readonly guard?: () => Promise<void>;
}

/** Lines with a fixed position in the file. Their encoding may not have ended. */
interface Waiting {
  readonly lines: Promise<readonly EncodedLine[]>;
  readonly settle: Resolvers<void>;
}

/**
 * An append-only file of JSON lines. Lines that arrive during a write are written and synced together, so many episodes
 * that end at the same time cost one sync. A line survives a crash of the machine once its promise has resolved.
 *
 * The first failed write ends the journal: the file is cut back to its last complete line, and later lines are refused
 * with the same error. The next write detects that the file was moved, deleted or changed by another program.
 */
export class JsonlJournal implements AsyncDisposable {
  readonly path: string;
  readonly #files: Files;
  readonly #file: OpenFile;
  readonly #guard: () => Promise<void>;
  readonly #identity: string;
  /** The size in bytes of the synced, complete lines. */
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
   * Opens the file for appending, and creates a missing file. Removes a torn last line, which a crash left, and adds a
   * missing last line feed.
   *
   * @throws UsageError if the file cannot be opened.
   */
  static async open(name: string, options: JournalOptions = {}): Promise<JsonlJournal> {
    const { files = diskFiles } = options;
    // An environment may change the working directory later.
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
   * Appends one line. Resolves when it is synced.
   *
   * @throws UsageError if this write or an earlier one failed.
   */
  async append(value: unknown): Promise<void> {
    await this.#add(encodeLine(value, acquireBytes).then((line) => [line]));
  }

  /**
   * Appends lines that stay together. Resolves when they are synced. The journal takes over their bytes, and returns
   * borrowed blocks (see `acquireBytes()`).
   */
  async appendLines(lines: readonly EncodedLine[]): Promise<void> {
    await this.#add(lines);
  }

  /** Adds lines in the order of the calls, however long their encoding takes. */
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
   * Reads the lines of the file in order, without their line feeds.
   *
   * @throws UsageError if the file cannot be read.
   */
  async *lines(): AsyncGenerator<string> {
    try {
      for await (const { text } of readPlacedLines(this.#files, this.path)) yield text;
    } catch (error) {
      throw storageError("read", this.path, error);
    }
  }

  async #flush(): Promise<void> {
    // One tick, so that episodes that end together share a sync.
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
      // Another process writes the file now, so it must not be cut.
      this.#broken = { reason };
      return;
    }
    if (this.#isClosed) {
      this.#broken = { reason: closedEarly(path.dirname(this.path)) };
      return;
    }
    try {
      const blocks = lines.flatMap(({ blocks }) => blocks);
      const end = await writeBlocks(this.#file, blocks, this.#size);
      await this.#file.sync();
      await this.#assertOwn(end);
      this.#size = end;
    } catch (error) {
      this.#broken = { reason: storageError("write", this.path, error) };
      // If another program writes the file, it must not be cut.
      if (!(error instanceof UsageError)) await this.#cutBack();
    }
  }

  /** Checks that the file at this path is still the open one, with the size that was written. */
  async #assertOwn(size: number): Promise<void> {
    const facts = await this.#files.facts(this.path);
    const isOwn = facts?.identity === this.#identity && facts.size === size;
    if (isOwn) return;
    const what = facts === undefined ? "it was moved or deleted" : "something else writes there";
    throw new UsageError(
      `Cannot continue writing ${this.path}: ${what}; find out what it was, then start the same command again`,
    );
  }

  async #cutBack(): Promise<void> {
    try {
      const { size } = await this.#file.facts();
      if (size <= this.#size) return;
      await this.#file.truncate(this.#size);
      await this.#file.sync();
    } catch {
      // The next start cuts the file too. The first error is the one to report.
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#flushing;
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#file.close();
  }
}
