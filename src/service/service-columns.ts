import path from "node:path";
import type { ColumnSource } from "../columns/column-source.ts";
import { openColumnFolder, type ColumnFolder } from "../run/columns/column-folder.ts";
import { columnsFolder, freeColumnFile, listNames } from "../run/columns/column-index.ts";
import { diskFiles } from "../run/disk/files.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { Batch } from "./batch.ts";
import { BatchColumns } from "./batch-columns.ts";
import type { GroupStore } from "./group-store.ts";
import { ServiceError } from "./service-error.ts";

/** The settings of a service's side columns. */
interface ServiceColumnsOptions {
  /** Returns the folder of a batch's run. */
  readonly folderOf: (batch: string) => string;
  /** Returns all batches, oldest first. */
  readonly batches: () => readonly Batch[];
  readonly groups: Pick<GroupStore, "isForgotten" | "isAllForgotten">;
  /** True to keep the files of acknowledged groups. */
  readonly keepsAll: boolean;
  /** Returns the number of bytes of acknowledged groups of ended batches that are kept for the doctor. */
  readonly doctorBytes: () => number;
}

/** A part of a side column that a reader asked for. */
export interface FoundColumn {
  /** Number of bytes. */
  readonly size: number;
  /** Reads a range of the bytes. */
  readonly read: (start: number, end: number) => Promise<Uint8Array>;
}

/**
 * The side columns of a service's batches. Readers get bytes by their hash. The files of acknowledged groups are freed:
 * while a batch is played, each full file by itself; after the batch, the rest together.
 */
export class ServiceColumns implements AsyncDisposable {
  readonly #options: ServiceColumnsOptions;
  /** The columns of batches that are played, by batch id. */
  readonly #playing = new Map<string, BatchColumns>();
  /** The folders that are open for reading, by batch id. */
  readonly #open = new Map<string, ColumnFolder>();
  /** The ended batches whose groups were acknowledged, and whose files the doctor may need, oldest first. */
  readonly #retired = new Set<string>();
  /** The ended batches whose files are freed. */
  readonly #freed = new Set<string>();
  #freeing: Promise<void> = Promise.resolve();

  constructor(options: ServiceColumnsOptions) {
    this.#options = options;
  }

  /** Records that a batch is being played. */
  begin(batch: string, folder: Pick<RunFolder, "columns">): BatchColumns {
    const columns = new BatchColumns(folder, this.#options.groups);
    this.#playing.set(batch, columns);
    return columns;
  }

  /** Records that a batch is not played any more. */
  rest(batch: string): void {
    this.#playing.delete(batch);
  }

  /**
   * Frees the files whose groups were acknowledged.
   *
   * @throws UsageError if the disk fails.
   */
  async free(): Promise<void> {
    if (this.#options.keepsAll) return;
    const freed = this.#freeing.then(async () => await this.#free());
    this.#freeing = freed.catch(() => {});
    await freed;
  }

  async #free(): Promise<void> {
    for (const [batch, columns] of Array.from(this.#playing)) {
      for (const name of await columns.free()) await this.#open.get(batch)?.forget(name);
    }
    for (const batch of this.#options.batches()) {
      const { id, hasEnded } = batch;
      const isNeeded = !hasEnded || this.#playing.has(id) || this.#freed.has(id);
      if (!isNeeded && this.#options.groups.isAllForgotten(id)) this.#retired.add(id);
    }
    let left = this.#options.doctorBytes();
    for (const id of Array.from(this.#retired).toReversed()) {
      // Older ones do not stay in the place of a large one.
      left -= left > 0 ? await this.#sizeOf(id) : 0;
      if (left > 0) continue;
      this.#retired.delete(id);
      this.#freed.add(id);
      await this.#freeAll(id);
    }
  }

  /** Returns the number of bytes of a batch's files. */
  async #sizeOf(batch: string): Promise<number> {
    const dir = path.join(this.#options.folderOf(batch), columnsFolder);
    let size = 0;
    for (const name of await listNames(dir, diskFiles)) {
      size += (await diskFiles.facts(path.join(dir, name)))?.size ?? 0;
    }
    return size;
  }

  async #freeAll(batch: string): Promise<void> {
    const dir = path.join(this.#options.folderOf(batch), columnsFolder);
    for (const name of await listNames(dir, diskFiles)) {
      if (name.endsWith(".bin")) await freeColumnFile(dir, name, diskFiles);
    }
    await this.#open.get(batch)?.[Symbol.asyncDispose]();
    this.#open.delete(batch);
  }

  /** Returns the source from which a `Taker` reads a batch's columns. Readers over HTTP use `find()`. */
  sourceOf(batch: string): ColumnSource {
    return this.#folderOf(batch);
  }

  /**
   * Finds the part with a hash.
   *
   * @throws ServiceError `not-found` if no batch has it, or its rows were acknowledged.
   */
  async find(hash: string): Promise<FoundColumn> {
    for (const { id, taker } of this.#options.batches().toReversed()) {
      if (taker !== undefined || this.#retired.has(id) || this.#freed.has(id)) continue;
      const folder = this.#folderOf(id);
      const place = await folder.placeOf(hash);
      if (place === undefined) continue;
      const part = { hash, size: place.size };
      return {
        size: place.size,
        read: async (start, end) => await folder.read(part, { start, end }),
      };
    }
    throw new ServiceError(
      "not-found",
      "No batch has a column with this hash: it is wrong, or its rows were acknowledged",
    );
  }

  #folderOf(batch: string): ColumnFolder {
    let folder = this.#open.get(batch);
    if (folder === undefined) {
      folder = openColumnFolder(this.#options.folderOf(batch));
      this.#open.set(batch, folder);
    }
    return folder;
  }

  /** Closes the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#freeing;
    for (const folder of this.#open.values()) await folder[Symbol.asyncDispose]();
    this.#open.clear();
  }
}
