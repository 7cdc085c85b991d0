import path from "node:path";
import { UsageError } from "../../errors.ts";
import { diskFiles, writeAll, type OpenFile } from "../../run/disk/files.ts";
import { storageError } from "../../run/disk/storage-error.ts";
import { elementBytes, type ArrayType } from "./array-type.ts";

/** An array to export. Its bytes are little-endian, in C order. */
export interface ColumnArray {
  readonly type: ArrayType;
  readonly shape: readonly number[];
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

/** The place of an array in an export's binary file. JSON-able. */
export interface PlacedArray {
  /** Index of the first byte, a multiple of 64. */
  readonly offset: number;
  readonly shape: readonly number[];
  /** The element type, by numpy's name. Little-endian. */
  readonly dtype: ArrayType;
}

/** Takes the arrays of an export, one after the other. */
export interface ColumnSink {
  place(array: ColumnArray): Promise<PlacedArray>;
}

/** The alignment of arrays in bytes: each begins at a multiple of this number. */
const alignment = 64;

/** Returns the name of the binary file of an export's arrays. The file is in the same folder as the rows. */
export function arraysFileOf(file: string): string {
  return `${file}.arrays`;
}

/**
 * Removes the binary file that an earlier export to the same file of rows has left.
 *
 * @throws UsageError if it cannot be removed.
 */
export async function removeArrays(file: string): Promise<void> {
  const arrays = arraysFileOf(file);
  try {
    await diskFiles.remove(arrays);
  } catch (error) {
    throw storageError("remove", arrays, error);
  }
}

/** Returns the number of bytes of an array. */
export function arrayBytes(shape: readonly number[], type: ArrayType): number {
  return shape.reduce((product, length) => product * length, elementBytes(type));
}

/** Assigns offsets to arrays. Each array begins at the next multiple of 64 after the previous one. */
export class ArrayPlaces {
  #end = 0;

  /** The number of bytes of all arrays so far, with the gaps between them. */
  get byteCount(): number {
    return this.#end;
  }

  next({ shape, type }: Pick<ColumnArray, "shape" | "type">): PlacedArray {
    const offset = Math.ceil(this.#end / alignment) * alignment;
    this.#end = offset + arrayBytes(shape, type);
    return { offset, shape, dtype: type };
  }
}

/** Writes the binary file of an export. The file appears under its name when it is complete. */
export class ArraysFile implements ColumnSink {
  readonly #file: string;
  readonly #next: string;
  readonly #open: OpenFile;
  readonly #places = new ArrayPlaces();
  #isDone = false;

  private constructor(file: string, next: string, open: OpenFile) {
    this.#file = file;
    this.#next = next;
    this.#open = open;
  }

  /**
   * Creates the file under a temporary name.
   *
   * @throws UsageError if the file cannot be created.
   */
  static async create(file: string): Promise<ArraysFile> {
    const next = `${file}.${process.pid}.next`;
    try {
      return new ArraysFile(file, next, await diskFiles.open(next, "replace"));
    } catch (error) {
      throw storageError("write", file, error);
    }
  }

  /** The number of bytes so far. */
  get byteCount(): number {
    return this.#places.byteCount;
  }

  async place(array: ColumnArray): Promise<PlacedArray> {
    const placed = this.#places.next(array);
    let at = placed.offset;
    for await (const bytes of joinBlocks(array.bytes())) {
      try {
        await writeAll(this.#open, bytes, at);
      } catch (error) {
        throw storageError("write", this.#file, error);
      }
      at += bytes.length;
    }
    requireSize(array, at - placed.offset);
    return placed;
  }

  /**
   * Gives the complete file its name. If an earlier export left a file of this name, removes the rows of that export
   * first. So after a crash, no reader finds rows with the arrays of another export.
   *
   * @param rows - The file of the rows, which the caller replaces next.
   */
  async finish(rows?: string): Promise<void> {
    try {
      await this.#open.sync();
      await this.#open.close();
      const isReplaced = (await diskFiles.facts(this.#file)) !== undefined;
      if (isReplaced && rows !== undefined) {
        const target = await diskFiles.realPath(rows);
        await diskFiles.remove(target);
        await diskFiles.syncFolder(path.dirname(target));
      }
      await diskFiles.rename(this.#next, this.#file);
      this.#isDone = true;
    } catch (error) {
      throw storageError("write", this.#file, error);
    }
  }

  /** Removes the file if it was not finished. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDone) return;
    await this.#open.close().catch(() => {});
    await diskFiles.remove(this.#next);
  }
}

/** The number of bytes of a write. */
const writeSize = 256 * 1024;

/**
 * Joins small blocks, such as the ids of single tokens, so that there are few writes. Each yielded block is the same
 * buffer, so copy it before the next one.
 */
async function* joinBlocks(blocks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const joined = Buffer.allocUnsafe(writeSize);
  let size = 0;
  for await (const block of blocks) {
    if (size > 0 && size + block.length > writeSize) {
      yield joined.subarray(0, size);
      size = 0;
    }
    if (block.length > writeSize) {
      yield block;
      continue;
    }
    joined.set(block, size);
    size += block.length;
  }
  if (size > 0) yield joined.subarray(0, size);
}

/**
 * Compares the number of an array's bytes with its shape.
 *
 * @throws UsageError if an array has other bytes than its shape says: its parts are damaged.
 */
export function requireSize({ shape, type }: ColumnArray, size: number): void {
  const expected = arrayBytes(shape, type);
  if (size === expected) return;
  throw new UsageError(
    `Cannot export an array of shape ${JSON.stringify(shape)}: it has ${size} bytes, expected ${expected}; ` +
      "turnwright verify checks the run's folder",
  );
}
