import {
  ArrayPlaces,
  type ColumnArray,
  type ColumnSink,
  type PlacedArray,
} from "../../../export/columns/column-sink.ts";
import type { ArraysReader } from "./arrays-reader.ts";

/** Compares the arrays that a run gives with those in an export's binary file. */
export class ComparedArrays implements ColumnSink {
  readonly #arrays: ArraysReader;
  readonly #places = new ArrayPlaces();
  readonly #different: PlacedArray[] = [];

  constructor(arrays: ArraysReader) {
    this.#arrays = arrays;
  }

  async place(array: ColumnArray): Promise<PlacedArray> {
    const placed = this.#places.next(array);
    let at = placed.offset;
    let isEqual = true;
    for await (const bytes of array.bytes()) {
      const isInside = at + bytes.length <= (this.#arrays.size ?? 0);
      if (isEqual) {
        isEqual =
          isInside && Buffer.compare(await this.#arrays.read(at, bytes.length), bytes) === 0;
      }
      at += bytes.length;
    }
    if (!isEqual) this.#different.push(placed);
    return placed;
  }

  /** Returns the arrays since the last call that differ from those in the file. */
  takeDifferent(): readonly PlacedArray[] {
    return this.#different.splice(0);
  }
}
