import path from "node:path";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import { withoutBytes, type ColumnPart, type ColumnParts } from "../../columns/column-part.ts";
import { mapParts, type ColumnStore } from "../../columns/column-store.ts";
import { closedEarly } from "../disk/closed-early.ts";
import type { Files, OpenFile } from "../disk/files.ts";
import { JsonlJournal } from "../disk/jsonl-journal.ts";
import { storageError } from "../disk/storage-error.ts";
import { writeBlocks } from "../disk/write-blocks.ts";
import { ColumnIndex, freeColumnFile, listNames, type ColumnPlace } from "./column-index.ts";

/** Settings of a `ColumnWriter`. */
export interface ColumnWriterOptions {
  readonly files: Files;
  /** The first part of the names of this writer's files. No other writer has it. */
  readonly name: string;
  /** Called before each write. If it throws, nothing is written. */
  readonly guard?: () => Promise<void>;
  /** A new file begins when a file has this many bytes. Default 1 GiB. */
  readonly fileBytes?: number;
  /** `keep()` waits while more bytes than this are not written yet. Default 64 MiB. */
  readonly waitingBytes?: number;
}

const defaultFileBytes = 2 ** 30;
const defaultWaitingBytes = 64 * 2 ** 20;

interface ColumnFile {
  readonly name: string;
  readonly open: OpenFile;
  /** Number of bytes that are synced. */
  size: number;
}

interface Waiting {
  readonly hash: string;
  readonly bytes: Uint8Array;
}

/**
 * Writes the columns of a run. Bytes are appended to a file as they are; the index gets a line for each part after the
 * bytes are synced. All parts that arrive during a write are written and synced together.
 *
 * Each start of a run writes files of its own. Bytes that a crash left without a line in the index stay there and are
 * never read.
 */
export class ColumnWriter implements ColumnStore, AsyncDisposable {
  readonly #dir: string;
  readonly #options: Required<ColumnWriterOptions>;
  readonly #index: JsonlJournal;
  /** The positions of all writers' parts. `undefined` until `has()` needs them. */
  #known: ColumnIndex | undefined;
  #file: ColumnFile | undefined;
  #fileCount = 0;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #syncedBytes = 0;
  /** The number of parts that were taken over, and the number of those with a written batch. */
  #addedCount = 0;
  #writtenCount = 0;
  /** The batch that is being written, or the next one. Resolves when it is written. */
  #batch: Resolvers<void> | undefined;
  #writing: Promise<void> | undefined;
  #broken: { readonly reason: unknown } | undefined;
  #isClosed = false;

  private constructor(dir: string, index: JsonlJournal, options: Required<ColumnWriterOptions>) {
    this.#dir = dir;
    this.#index = index;
    this.#options = options;
  }

  /**
   * Opens the index of a new writer, and creates the columns' folder.
   *
   * @throws UsageError if the disk fails.
   */
  static async open(dir: string, options: ColumnWriterOptions): Promise<ColumnWriter> {
    const { files, name, guard = () => Promise.resolve() } = options;
    try {
      await files.makeFolder(dir);
      await files.syncFolder(path.dirname(dir));
    } catch (error) {
      throw storageError("create the columns' folder", dir, error);
    }
    const index = await JsonlJournal.open(path.join(dir, `${name}.jsonl`), { files, guard });
    const { fileBytes = defaultFileBytes, waitingBytes = defaultWaitingBytes } = options;
    return new ColumnWriter(dir, index, { ...options, guard, fileBytes, waitingBytes });
  }

  /** Number of bytes of all parts that are synced. */
  get syncedBytes(): number {
    return this.#syncedBytes;
  }

  async keep(columns: ColumnParts): Promise<ColumnParts> {
    await this.keepParts(Object.values(columns).flat());
    return mapParts(columns, withoutBytes);
  }

  /**
   * Takes over the bytes of parts. Waits while too many bytes are not written yet.
   *
   * @throws UsageError if the disk fails.
   */
  async keepParts(parts: readonly ColumnPart[]): Promise<void> {
    if (this.#isClosed) throw closedEarly(path.dirname(this.#dir));
    for (const part of parts) this.#add(part);
    await this.#batchesWhile(() => this.#waitingBytes > this.#options.waitingBytes);
  }

  /** Waits for the end of batches while a condition holds. */
  async #batchesWhile(isDue: () => boolean): Promise<void> {
    while (this.#broken === undefined && isDue()) {
      this.#batch ??= withResolvers();
      await this.#batch.promise;
    }
    if (this.#broken !== undefined) throw this.#broken.reason;
  }

  /**
   * Returns true if a file of this or another writer has the part with this hash, synced.
   *
   * @throws UsageError if the disk fails.
   */
  async has(hash: string): Promise<boolean> {
    const { files } = this.#options;
    this.#known ??= new ColumnIndex(this.#dir, files);
    if (this.#known.find(hash) === undefined) await this.#known.refresh();
    return this.#known.find(hash) !== undefined;
  }

  /** The number of this writer's files so far. All but the last are full. */
  get fileCount(): number {
    return this.#fileCount;
  }

  /**
   * Removes a full file of this writer, because no row or recording that names its parts is needed any more.
   *
   * @param number - The file's index among this writer's files, from 0.
   * @returns the file's name.
   * @throws UsageError if the disk fails.
   */
  async free(number: number): Promise<string> {
    const name = this.#nameOf(number);
    await freeColumnFile(this.#dir, name, this.#options.files);
    await this.#known?.rebuild();
    return name;
  }

  #nameOf(number: number): string {
    return `${this.#options.name}-${String(number).padStart(4, "0")}.bin`;
  }

  #add({ hash, bytes }: ColumnPart): void {
    // A part without bytes is in a file already.
    if (bytes === undefined || bytes.length === 0) return;
    this.#waiting.push({ hash, bytes });
    this.#waitingBytes += bytes.length;
    this.#addedCount += 1;
    this.#writing ??= this.#write();
  }

  /**
   * Resolves when all parts so far are synced, with their lines in the index. Does not wait for parts that arrive
   * meanwhile, because in a run with many episodes new parts always arrive.
   *
   * @throws UsageError if the disk fails.
   */
  async flush(): Promise<void> {
    const end = this.#addedCount;
    await this.#batchesWhile(() => this.#writtenCount < end);
  }

  async #write(): Promise<void> {
    // One tick, so that turns that end together share a sync.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0 && this.#broken === undefined) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#writeBatch(batch);
      } catch (error) {
        this.#broken = { reason: storageError("write", this.#dir, error) };
      }
      for (const { bytes } of batch) this.#waitingBytes -= bytes.length;
      this.#writtenCount += batch.length;
      this.#batch?.resolve();
      this.#batch = undefined;
    }
    this.#writing = undefined;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    await this.#options.guard();
    for (let start = 0; start < batch.length;) {
      const file = await this.#currentFile();
      const places: ColumnPlace[] = [];
      let end = start;
      let at = file.size;
      while (end < batch.length && (end === start || at < this.#options.fileBytes)) {
        const { hash, bytes } = batch[end]!;
        places.push({ hash, file: file.name, at, size: bytes.length });
        at += bytes.length;
        end += 1;
      }
      const blocks = batch.slice(start, end).map(({ bytes }) => bytes);
      await writeBlocks(file.open, blocks, file.size);
      await file.open.sync();
      this.#syncedBytes += at - file.size;
      file.size = at;
      const text = places.map((place) => `${JSON.stringify(place)}\n`).join("");
      await this.#index.appendLines([{ blocks: [Buffer.from(text)], hash: "" }]);
      start = end;
    }
  }

  /** Returns the file that the next part goes to: a new one if the last one is full. */
  async #currentFile(): Promise<ColumnFile> {
    const { files, fileBytes } = this.#options;
    if (this.#file !== undefined && this.#file.size < fileBytes) return this.#file;
    await this.#file?.open.close();
    const name = this.#nameOf(this.#fileCount++);
    const open = await files.open(path.join(this.#dir, name), "create");
    this.#file = { name, open, size: 0 };
    await files.syncFolder(this.#dir);
    return this.#file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    while (this.#writing !== undefined) await this.#writing;
    await this.#file?.open.close();
    this.#file = undefined;
    await this.#index[Symbol.asyncDispose]();
  }
}

/** Returns a name that no writer in the columns' folder has: with the prefix `start`, `start-0`, `start-1`, … */
export async function nextWriter(dir: string, files: Files, prefix = "start"): Promise<string> {
  const names = await listNames(dir, files);
  const own = names.filter((name) => name.startsWith(`${prefix}-`));
  const used = own.flatMap((name) => /^(\d+)[-.]/.exec(name.slice(prefix.length + 1))?.[1] ?? []);
  return `${prefix}-${Math.max(-1, ...used.map(Number)) + 1}`;
}
