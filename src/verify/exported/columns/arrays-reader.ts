import { arrayBytes, type PlacedArray } from "../../../export/columns/column-sink.ts";
import type { ArrayType } from "../../../export/columns/array-type.ts";
import { diskFiles, type OpenFile } from "../../../run/disk/files.ts";

/** Reads the binary file of an export's arrays. The file may be absent. */
export class ArraysReader {
  readonly file: string;
  #open: OpenFile | undefined;
  #size = 0;

  private constructor(file: string) {
    this.file = file;
  }

  static async open(file: string): Promise<ArraysReader> {
    const reader = new ArraysReader(file);
    if ((await diskFiles.facts(file)) !== undefined) {
      reader.#open = await diskFiles.open(file, "read");
      reader.#size = (await reader.#open.facts()).size;
    }
    return reader;
  }

  /** The number of bytes of the file. `undefined` if it does not exist. */
  get size(): number | undefined {
    return this.#open && this.#size;
  }

  /** Reads bytes that the file has. */
  async read(offset: number, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(size);
    for (let count = 0; count < size;) {
      const read = await this.#open!.read(bytes.subarray(count), offset + count);
      if (read === 0) throw new Error(`${this.file} was cut while it was read`);
      count += read;
    }
    return bytes;
  }

  /** Reads the values of an array that the file has. */
  async values(placed: PlacedArray): Promise<ArrayLike<number>> {
    return await this.rowValues(placed, 0, placed.shape[0]!);
  }

  /** Reads the values of some rows. */
  async rowValues(
    { offset, shape, dtype }: PlacedArray,
    start: number,
    end: number,
  ): Promise<ArrayLike<number>> {
    const rowSize = arrayBytes(shape.slice(1), dtype);
    const bytes = await this.read(offset + start * rowSize, (end - start) * rowSize);
    return new lists[dtype](bytes.buffer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#open?.close();
  }
}

const lists = {
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  float32: Float32Array,
} as const satisfies Record<ArrayType, unknown>;
