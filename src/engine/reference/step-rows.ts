import { assertInvariant } from "../../errors.ts";
import { BLOCK_SCORE_BYTES, SPAN_ENTRY_BYTES, tileRowCount } from "./kernels/attend.ts";
import {
  BLOCK_POSITIONS,
  headPartBytes,
  keyOffset,
  valueOffset,
} from "./kernels/key-value-block.ts";
import { ROW_ENTRY_BYTES } from "./kernels/rotate.ts";
import type { DecoderShape } from "./model/decoder-shape.ts";
import type { WorkAddresses } from "./model/memory-plan.ts";

/** The tokens of one sequence in a step. */
export interface DecoderPart {
  /** The index of the sequence's table of blocks. */
  readonly slot: number;
  /** Ids from `firstPosition` on. The sequence's blocks contain all earlier positions. */
  readonly ids: Int32Array;
  readonly firstPosition: number;
  /** The index of the first id with requested logits, or `ids.length` for none. */
  readonly firstLogit: number;
}

/** Rows that read the cached keys together. */
export interface AttentionTile {
  readonly firstRow: number;
  readonly rowCount: number;
  /** Number of positions of the longest sequence's blocks. */
  readonly limit: number;
  /** The address of the tile's spans. `spanEnd` is exclusive. */
  readonly spans: number;
  readonly spanEnd: number;
}

/** A row of a step. */
export interface StepRow {
  readonly partIndex: number;
  readonly id: number;
  readonly position: number;
  readonly wantsLogits: boolean;
  /** Addresses of the keys of the sequence's blocks, up to the row's own block. */
  readonly blocks: Int32Array;
}

/** The sequences' blocks, and the layout of a step's tokens in rows. */
export class StepRows {
  readonly #work: WorkAddresses;
  readonly #integers: Int32Array;
  readonly #headSize: number;
  readonly #groupSize: number;
  readonly #tileRowCount: number;
  /** Addresses of the blocks' keys in the first part, by slot and index. */
  readonly #blockTables: Int32Array;

  constructor(
    shape: DecoderShape,
    { work, integers }: { work: WorkAddresses; integers: Int32Array },
  ) {
    this.#work = work;
    this.#integers = integers;
    this.#headSize = shape.headSize;
    this.#groupSize = shape.queryHeadCount / shape.keyValueHeadCount;
    this.#tileRowCount = tileRowCount({ groupSize: this.#groupSize });
    this.#blockTables = new Int32Array(work.slotCount * work.tableLength);
  }

  /** Sets a block of a sequence's table. `index` counts blocks from the sequence's start. */
  setBlock(slot: number, { index, block }: { index: number; block: number }): void {
    const { tableLength, blocks } = this.#work;
    assertInvariant(index < tableLength, "a sequence has more blocks than its table");
    this.#blockTables[slot * tableLength + index] = blocks + block * headPartBytes(this.#headSize);
  }

  /** Returns a block of a sequence's table. */
  blockAt(slot: number, index: number): number {
    return this.toBlock(this.#blockTables[slot * this.#work.tableLength + index]!);
  }

  /** Returns the block with keys at an address of a table. */
  toBlock(address: number): number {
    return (address - this.#work.blocks) / headPartBytes(this.#headSize);
  }

  /**
   * Assigns rows to the parts' tokens and writes the table of rows. Sequences that share blocks get
   * consecutive rows, so that attention reads these blocks once for all of them.
   */
  layOut(parts: readonly DecoderPart[]): readonly StepRow[] {
    const rows = parts
      .map((part, partIndex) => this.#rowsOf(part, partIndex))
      .toSorted(([a], [b]) => (a && b ? compareBlocks(a.blocks, b.blocks) : 0))
      .flat();
    assertInvariant(rows.length <= this.#work.rowCount, "a step has more rows than fit");
    for (const [index, row] of rows.entries()) this.#writeRow(index, row);
    return rows;
  }

  #rowsOf(part: DecoderPart, partIndex: number): readonly StepRow[] {
    const start = part.slot * this.#work.tableLength;
    return Array.from(part.ids, (id, index) => {
      const position = part.firstPosition + index;
      const blockCount = Math.floor(position / BLOCK_POSITIONS) + 1;
      const blocks = this.#blockTables.subarray(start, start + blockCount);
      return { partIndex, id, position, wantsLogits: index >= part.firstLogit, blocks };
    });
  }

  #writeRow(index: number, { position, blocks }: StepRow): void {
    const block = blocks.at(-1) ?? 0;
    const entry = (this.#work.rowTable + index * ROW_ENTRY_BYTES) / 4;
    this.#integers[entry] = this.#work.angles + position * this.#headSize * 4;
    this.#integers[entry + 1] = block + keyOffset(position);
    this.#integers[entry + 2] = block + this.#work.partStride + valueOffset(position);
    this.#integers[entry + 3] = position + 1;
  }

  /** Divides the rows into tiles, and lists the blocks that each tile's rows see. */
  tile(rows: readonly StepRow[]): readonly AttentionTile[] {
    const tiles: AttentionTile[] = [];
    let spans = this.#work.spans;
    for (let firstRow = 0; firstRow < rows.length; firstRow += this.#tileRowCount) {
      const some = rows.slice(firstRow, firstRow + this.#tileRowCount);
      const blockCount = Math.max(...some.map(({ blocks }) => blocks.length));
      const spanEnd = this.#writeSpans(some, { start: 0, end: some.length, index: 0, spans });
      const limit = blockCount * BLOCK_POSITIONS;
      tiles.push({ firstRow, rowCount: some.length, limit, spans, spanEnd });
      spans = spanEnd;
    }
    return tiles;
  }

  /**
   * Writes the spans of rows that share the blocks before `index`, and returns the end address. A
   * row's own blocks are listed consecutively, as they mostly are in memory, because memory reads
   * sequential data several times as fast.
   */
  #writeSpans(
    rows: readonly StepRow[],
    { start, end, index, spans }: { start: number; end: number; index: number; spans: number },
  ): number {
    let address = spans;
    for (let at = index; ; at++) {
      const block = rows[start]?.blocks[at];
      const groupEnd = endOfGroup(rows, { start, end, index: at });
      if (groupEnd < end) {
        for (let from = start, to = groupEnd; from < end; from = to) {
          to = endOfGroup(rows, { start: from, end, index: at });
          address = this.#writeSpans(rows, { start: from, end: to, index: at, spans: address });
        }
        return address;
      }
      if (block === undefined) return address;
      const entry = address / 4;
      this.#integers[entry] = block;
      this.#integers[entry + 1] = start * this.#groupSize;
      this.#integers[entry + 2] = (end - start) * this.#groupSize;
      this.#integers[entry + 3] = at * BLOCK_SCORE_BYTES;
      address += SPAN_ENTRY_BYTES;
    }
  }
}

/**
 * Returns the index after the last consecutive row from `start` on that has the same block, or
 * none.
 */
function endOfGroup(
  rows: readonly StepRow[],
  { start, end, index }: { start: number; end: number; index: number },
): number {
  const block = rows[start]?.blocks[index];
  for (let row = start + 1; row < end; row++) {
    if (rows[row]?.blocks[index] !== block) return row;
  }
  return end;
}

/** Compares by the first block that differs. A prefix comes first. */
function compareBlocks(left: Int32Array, right: Int32Array): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
