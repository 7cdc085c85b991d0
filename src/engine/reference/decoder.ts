import { assertInvariant } from "../../errors.ts";
import type { Kernels } from "./kernels/build-kernels.ts";
import {
  BLOCK_POSITIONS,
  headBlockBytes,
  keyOffset,
  valueOffset,
} from "./kernels/key-value-block.ts";
import { PANEL_WIDTH } from "./kernels/multiply.ts";
import { ROW_ENTRY_BYTES } from "./kernels/rotate.ts";
import type { DecoderShape } from "./model/decoder-shape.ts";
import type {
  LayerAddresses,
  LinearAddress,
  WeightAddresses,
  WorkAddresses,
} from "./model/memory-plan.ts";
import { RotaryAngles } from "./model/rotary-angles.ts";
import type { LogitRow } from "./logit-row.ts";
import type { WasmMemory } from "./wasm/web-assembly.ts";

/** Tokens of one sequence that a step computes. */
export interface DecoderPart {
  /** The table of the sequence's blocks. */
  readonly slot: number;
  /** Consecutive, the first at `firstPosition`; all earlier positions are in the sequence's blocks. */
  readonly ids: Int32Array;
  readonly firstPosition: number;
  /** The first of `ids` whose logits are wanted; `ids.length` where none are. */
  readonly firstLogit: number;
}

/** Told of each row whose logits were wanted, in order of parts and ids. */
export type OnLogits = (partIndex: number, row: LogitRow) => void;

/** Rows that go through a matrix together, so that they stay in the core's cache. */
const ROWS_IN_CACHE = 32;

/** One thread's forward pass over its own blocks of keys and values. */
export class Decoder {
  readonly #shape: DecoderShape;
  readonly #kernels: Kernels;
  readonly #weights: WeightAddresses;
  readonly #work: WorkAddresses;
  readonly #floats: Float32Array;
  readonly #integers: Int32Array;
  readonly #angles: RotaryAngles;

  constructor({
    shape,
    kernels,
    weights,
    work,
    memory,
  }: {
    shape: DecoderShape;
    kernels: Kernels;
    weights: WeightAddresses;
    work: WorkAddresses;
    memory: WasmMemory;
  }) {
    this.#shape = shape;
    this.#kernels = kernels;
    this.#weights = weights;
    this.#work = work;
    this.#floats = new Float32Array(memory.buffer);
    this.#integers = new Int32Array(memory.buffer);
    this.#angles = new RotaryAngles(shape, { floats: this.#floats, address: work.angles });
  }

  /** Puts a block into a sequence's table. `index` counts blocks from the sequence's start. */
  setBlock(slot: number, at: { index: number; block: number }): void {
    const { blockTables, tableLength, blocks, blockBytes } = this.#work;
    assertInvariant(at.index < tableLength, "a sequence has more blocks than its table");
    const entry = blockTables / 4 + slot * tableLength + at.index;
    this.#integers[entry] = blocks + at.block * blockBytes;
  }

  /** Forgets what a block holds: what is left in it could be no number, and spoil its new owner. */
  clearBlock(block: number): void {
    const { blocks, blockBytes } = this.#work;
    const start = (blocks + block * blockBytes) / 4;
    this.#floats.fill(0, start, start + blockBytes / 4);
  }

  /** Computes the parts' tokens: their keys and values go into the blocks, their logits out. */
  forward(parts: readonly DecoderPart[], onLogits: OnLogits): void {
    const rows = this.#writeRows(parts);
    for (const [index, layer] of this.#weights.layers.entries()) {
      this.#attend(parts, { layer, layerIndex: index, rows });
      this.#feedForward(layer, rows);
    }
    this.#output(parts, onLogits);
  }

  /** Embeds the ids and writes the table of rows. Returns the number of rows. */
  #writeRows(parts: readonly DecoderPart[]): number {
    const { rowTable, rowCount, blockTables, tableLength, angles } = this.#work;
    const { headSize } = this.#shape;
    let row = 0;
    for (const { slot, ids, firstPosition } of parts) {
      this.#angles.reach(firstPosition + ids.length);
      const table = blockTables / 4 + slot * tableLength;
      for (const [index, id] of ids.entries()) {
        const position = firstPosition + index;
        const block = this.#integers[table + Math.floor(position / BLOCK_POSITIONS)] ?? 0;
        const entry = (rowTable + row * ROW_ENTRY_BYTES) / 4;
        this.#integers[entry] = angles + position * headSize * 4;
        this.#integers[entry + 1] = block + keyOffset(position, headSize);
        this.#integers[entry + 2] = block + valueOffset(position, headSize);
        this.#embed(id, row++);
      }
    }
    assertInvariant(row <= rowCount, "a step has more rows than there is room for");
    return row;
  }

  #embed(id: number, row: number): void {
    const { hiddenSize } = this.#shape;
    const { weights } = this.#weights.embedding;
    const panel = weights / 4 + Math.floor(id / PANEL_WIDTH) * PANEL_WIDTH * hiddenSize;
    const from = panel + (id % PANEL_WIDTH);
    const to = this.#work.hidden / 4 + row * hiddenSize;
    for (let index = 0; index < hiddenSize; index++) {
      this.#floats[to + index] = this.#floats[from + index * PANEL_WIDTH] ?? 0;
    }
  }

  /** Adds to each row what attention brings it. */
  #attend(
    parts: readonly DecoderPart[],
    { layer, layerIndex, rows }: { layer: LayerAddresses; layerIndex: number; rows: number },
  ): void {
    const { hidden, normalized, projected, queries, attended, rowTable } = this.#work;
    const { queryHeadCount, keyValueHeadCount, headSize } = this.#shape;
    const headBytes = headSize * 4;
    const rowBytes = queryHeadCount * headBytes;
    const groupBytes = rowBytes / keyValueHeadCount;
    const queryHeadStride = this.#work.rowCount * groupBytes;
    const layerOffset = layerIndex * keyValueHeadCount * headBlockBytes(headSize);
    this.#normalize(hidden, { rows, weights: layer.inputNorm, out: normalized });
    this.#multiply(layer.projection, { x: normalized, rows, out: projected });
    if (this.#shape.normalizesHeads) this.#normalizeHeads(layer, rows);
    this.#kernels.rotate(projected, rows, rowTable, queries, queryHeadStride, layerOffset);
    for (let head = 0; head < keyValueHeadCount; head++) {
      let row = 0;
      for (const { slot, ids, firstPosition } of parts) {
        this.#kernels.attend(
          queries + head * queryHeadStride + row * groupBytes,
          ids.length,
          firstPosition + 1,
          this.#work.blockTables + slot * this.#work.tableLength * 4,
          layerOffset + head * headBlockBytes(headSize),
          attended + row * rowBytes + head * groupBytes,
          rowBytes,
          this.#work.scratch,
          this.#weights.zeros,
        );
        row += ids.length;
      }
    }
    this.#multiply(layer.attentionOutput, { x: attended, rows, out: hidden, adds: true });
  }

  #normalizeHeads(layer: LayerAddresses, rows: number): void {
    const { queryHeadCount, keyValueHeadCount, headSize } = this.#shape;
    const headBytes = headSize * 4;
    const queryBytes = queryHeadCount * headBytes;
    for (let row = 0; row < rows; row++) {
      const queries = this.#work.projected + row * layer.projection.outputSize * 4;
      const keys = queries + queryBytes;
      const { normalizeHead } = this.#kernels;
      normalizeHead(queries, headBytes, queryHeadCount, layer.queryNorm, queries, headBytes);
      normalizeHead(keys, headBytes, keyValueHeadCount, layer.keyNorm, keys, headBytes);
    }
  }

  /** Adds to each row what the feed-forward part brings it. */
  #feedForward(layer: LayerAddresses, rows: number): void {
    const { hidden, normalized, gated, activated } = this.#work;
    this.#normalize(hidden, { rows, weights: layer.feedForwardNorm, out: normalized });
    this.#multiply(layer.gate, { x: normalized, rows, out: gated });
    this.#kernels.gate(gated, rows, activated);
    this.#multiply(layer.feedForwardOutput, { x: activated, rows, out: hidden, adds: true });
  }

  /** The logits of the rows that want them, a few rows at a time. */
  #output(parts: readonly DecoderPart[], onLogits: OnLogits): void {
    const { hidden, normalized, logits, logitRowCount } = this.#work;
    const rowBytes = this.#shape.hiddenSize * 4;
    const wanted = listLogitRows(parts);
    for (let start = 0; start < wanted.length; start += logitRowCount) {
      const some = wanted.slice(start, start + logitRowCount);
      for (const [index, { row }] of some.entries()) {
        this.#normalize(hidden + row * rowBytes, {
          rows: 1,
          weights: this.#weights.finalNorm,
          out: normalized + index * rowBytes,
        });
      }
      const { output } = this.#weights;
      this.#multiply(output, { x: normalized, rows: some.length, out: logits });
      for (const [index, { partIndex }] of some.entries()) {
        onLogits(partIndex, this.#logitRow(logits + index * output.outputSize * 4));
      }
    }
  }

  #logitRow(address: number): LogitRow {
    const { vocabularySize } = this.#shape;
    const { outputSize } = this.#weights.output;
    const start = address / 4;
    const end = address + outputSize * 4;
    const { exponentials } = this.#work;
    // Ids that only fill the last panel are never drawn.
    this.#floats.fill(-Infinity, start + vocabularySize, start + outputSize);
    return {
      logits: this.#floats.subarray(start, start + vocabularySize),
      soften: (temperature) => {
        const largest = this.#kernels.largest(address, end);
        const sum = this.#kernels.exponentials(address, end, largest, temperature, exponentials);
        const first = exponentials / 4;
        return {
          exponentials: this.#floats.subarray(first, first + vocabularySize),
          sum,
          largest,
        };
      },
    };
  }

  #normalize(
    x: number,
    { rows, weights, out }: { rows: number; weights: number; out: number },
  ): void {
    const rowBytes = this.#shape.hiddenSize * 4;
    this.#kernels.normalizeHidden(x, rowBytes, rows, weights, out, rowBytes);
  }

  /** Where it adds, the product is added to what is in `out`; the matrix has no bias then. */
  #multiply(
    { weights, bias, inputSize, outputSize }: LinearAddress,
    { x, rows, out, adds = false }: { x: number; rows: number; out: number; adds?: boolean },
  ): void {
    const inputBytes = inputSize * 4;
    const outputBytes = outputSize * 4;
    for (let row = 0; row < rows; row += ROWS_IN_CACHE) {
      const to = out + row * outputBytes;
      this.#kernels.multiply(
        x + row * inputBytes,
        inputBytes,
        Math.min(ROWS_IN_CACHE, rows - row),
        inputBytes,
        weights,
        inputBytes * PANEL_WIDTH,
        outputSize / PANEL_WIDTH,
        to,
        outputBytes,
        adds ? to : bias,
        adds ? outputBytes : 0,
      );
    }
  }
}

function listLogitRows(
  parts: readonly DecoderPart[],
): readonly { partIndex: number; row: number }[] {
  let first = 0;
  return parts.flatMap(({ ids, firstLogit }, partIndex) => {
    const rows = Array.from({ length: ids.length - firstLogit }, (_, index) => ({
      partIndex,
      row: first + firstLogit + index,
    }));
    first += ids.length;
    return rows;
  });
}
