import type { ExpertShape } from "../../columns/column-specs.ts";
import { expertBytes } from "../../columns/column-specs.ts";
import { BLOCK_POSITIONS } from "./kernels/key-value-block.ts";

/**
 * The experts of each computed position, in the layout of the column `routedExperts`. The experts are in memory beside
 * the keys and values of the position's block, so the cache keeps all three equally long. The rows of dense layers stay
 * 0.
 */
export class RouteMemory {
  readonly #ids: Uint8Array | Uint16Array;
  readonly #layerSize: number;
  readonly #rowSize: number;

  /** @param address - The routes of the first block. */
  constructor(
    shape: ExpertShape,
    { buffer, address }: { buffer: SharedArrayBuffer; address: number },
  ) {
    const bytes = expertBytes(shape);
    this.#ids = bytes === 1 ? new Uint8Array(buffer, address) : new Uint16Array(buffer, address);
    this.#layerSize = shape.perToken;
    this.#rowSize = shape.layerCount * shape.perToken;
  }

  /** Writes a layer's experts of a position. */
  write(
    { block, position }: { block: number; position: number },
    layer: number,
    ids: readonly number[],
  ): void {
    this.#ids.set(ids, this.#indexOf(block, position) + layer * this.#layerSize);
  }

  /**
   * Copies the rows of positions from `from` to before `end`.
   *
   * @param blockOf - Returns the block at an index of the sequence.
   */
  read(
    { from, end }: { from: number; end: number },
    blockOf: (index: number) => number,
  ): Uint8Array {
    const rowBytes = this.#rowSize * this.#ids.BYTES_PER_ELEMENT;
    const rows = new Uint8Array((end - from) * rowBytes);
    const all = new Uint8Array(this.#ids.buffer, this.#ids.byteOffset);
    for (let position = from; position < end;) {
      const index = Math.floor(position / BLOCK_POSITIONS);
      const next = Math.min(end, (index + 1) * BLOCK_POSITIONS);
      const start = this.#indexOf(blockOf(index), position) * this.#ids.BYTES_PER_ELEMENT;
      rows.set(
        all.subarray(start, start + (next - position) * rowBytes),
        (position - from) * rowBytes,
      );
      position = next;
    }
    return rows;
  }

  /** Returns the index of a position's first id. */
  #indexOf(block: number, position: number): number {
    return (block * BLOCK_POSITIONS + (position % BLOCK_POSITIONS)) * this.#rowSize;
  }
}
