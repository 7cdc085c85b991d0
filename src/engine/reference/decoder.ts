import { assertInvariant } from "../../errors.ts";
import type { ExpertKernels, Kernels } from "./kernels/build-kernels.ts";
import { headPartBytes } from "./kernels/key-value-block.ts";
import { PANEL_WIDTH } from "./kernels/multiply.ts";
import { ROW_ENTRY_BYTES } from "./kernels/rotate.ts";
import type { DecoderShape } from "./model/decoder-shape.ts";
import { routeShapeOf } from "./model/decoder-shape.ts";
import type { WorkAddresses } from "./model/memory-plan.ts";
import { RotaryAngles } from "./model/rotary-angles.ts";
import type { LayerAddresses, LinearAddress, WeightAddresses } from "./model/weight-plan.ts";
import { multiplyRows } from "./multiply-rows.ts";
import { ExpertLayers } from "./expert-layers.ts";
import type { LogitRow } from "./logit-row.ts";
import { RouteMemory } from "./route-memory.ts";
import type { AttentionTile, DecoderPart, StepRow } from "./step-rows.ts";
import { StepRows } from "./step-rows.ts";
import type { WasmMemory } from "./wasm/web-assembly.ts";

/** Called with each requested row of logits. Rows of one part come in order. */
type OnLogits = (partIndex: number, row: LogitRow) => void;

/** The forward pass of one thread over its own blocks of keys and values. */
export class Decoder {
  readonly #shape: DecoderShape;
  readonly #kernels: Kernels;
  readonly #weights: WeightAddresses;
  readonly #work: WorkAddresses;
  readonly #floats: Float32Array;
  readonly #stepRows: StepRows;
  readonly #angles: RotaryAngles;
  /** The layers with experts, and the memory of routes. `undefined` if no layer has experts. */
  readonly #experts: { readonly layers: ExpertLayers; readonly routes: RouteMemory } | undefined;

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
    this.#stepRows = new StepRows(shape, { work, integers: new Int32Array(memory.buffer) });
    this.#angles = new RotaryAngles(shape, { floats: this.#floats, address: work.angles });
    this.#experts = this.#createExperts(memory);
  }

  #createExperts({ buffer }: WasmMemory) {
    const { mixture } = this.#shape;
    const { experts: work } = this.#work;
    const routeShape = routeShapeOf(this.#shape);
    if (mixture === undefined || work === undefined || routeShape === undefined) return undefined;
    const kernels = this.#kernels as ExpertKernels;
    return {
      layers: new ExpertLayers(this.#shape, { mixture, kernels, work, floats: this.#floats }),
      routes: new RouteMemory(routeShape, { buffer, address: work.routes }),
    };
  }

  /** Sets a block of a sequence's table. `index` counts blocks from the sequence's start. */
  setBlock(slot: number, at: { index: number; block: number }): void {
    this.#stepRows.setBlock(slot, at);
  }

  /**
   * Copies a sequence's rows of the column `routedExperts`, of computed positions from `from` to before `end`. The model
   * has experts.
   */
  readRoutes(slot: number, range: { from: number; end: number }): Uint8Array {
    assertInvariant(this.#experts !== undefined, "routes are read of a model without experts");
    return this.#experts.routes.read(range, (index) => this.#stepRows.blockAt(slot, index));
  }

  /**
   * Clears a block's values. Sums include missing values with a weight of 0, so a NaN that an earlier sequence left in
   * the block would make the sums NaN.
   */
  clearBlock(block: number): void {
    const { layerCount, keyValueHeadCount, headSize } = this.#shape;
    const { blocks, partStride } = this.#work;
    const bytes = headPartBytes(headSize);
    for (let head = 0; head < layerCount * keyValueHeadCount; head++) {
      const start = (blocks + (2 * head + 1) * partStride + block * bytes) / 4;
      this.#floats.fill(0, start, start + bytes / 4);
    }
  }

  /** Computes the parts' tokens: writes keys and values into the blocks and reports logits. */
  forward(parts: readonly DecoderPart[], onLogits: OnLogits): void {
    const rows = this.#stepRows.layOut(parts);
    const tiles = this.#stepRows.tile(rows);
    for (const [index, { id, position }] of rows.entries()) {
      this.#angles.extendTo(position + 1);
      this.#embed(id, index);
    }
    for (const [index, layer] of this.#weights.layers.entries()) {
      this.#attend(tiles, { layer, layerIndex: index, rows: rows.length });
      this.#feedForward(layer, { layerIndex: index, rows });
    }
    this.#output(rows, onLogits);
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

  /** Adds the attention's result to each row. */
  #attend(
    tiles: readonly AttentionTile[],
    { layer, layerIndex, rows }: { layer: LayerAddresses; layerIndex: number; rows: number },
  ): void {
    const { hidden, normalized, projected, queries, attended, rowTable } = this.#work;
    const { queryHeadCount, keyValueHeadCount, headSize } = this.#shape;
    const headBytes = headSize * 4;
    const rowBytes = queryHeadCount * headBytes;
    const groupBytes = rowBytes / keyValueHeadCount;
    const queryHeadStride = this.#work.rowCount * groupBytes;
    const headStride = 2 * this.#work.partStride;
    const layerOffset = layerIndex * keyValueHeadCount * headStride;
    this.#normalize(hidden, { rows, weights: layer.inputNorm, out: normalized });
    this.#multiply(layer.projection, { x: normalized, rows, out: projected });
    if (this.#shape.normalizesHeads) this.#normalizeHeads(layer, rows);
    this.#kernels.rotate(
      projected,
      rows,
      rowTable,
      queries,
      queryHeadStride,
      layerOffset,
      headStride,
    );
    for (let head = 0; head < keyValueHeadCount; head++) {
      const keys = layerOffset + head * headStride;
      for (const { firstRow, rowCount, limit, spans, spanEnd } of tiles) {
        this.#kernels.attend(
          queries + head * queryHeadStride + firstRow * groupBytes,
          rowCount,
          rowTable + firstRow * ROW_ENTRY_BYTES,
          spans,
          spanEnd,
          limit,
          keys,
          keys + this.#work.partStride,
          attended + firstRow * rowBytes + head * groupBytes,
          rowBytes,
          this.#work.scratch,
          this.#weights.zeros,
        );
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

  /** Adds the feed-forward result to each row, and keeps the rows' experts. */
  #feedForward(
    { feedForward, feedForwardNorm }: LayerAddresses,
    { layerIndex, rows: stepRows }: { layerIndex: number; rows: readonly StepRow[] },
  ): void {
    const { hidden, normalized, gated, activated } = this.#work;
    const rows = stepRows.length;
    this.#normalize(hidden, { rows, weights: feedForwardNorm, out: normalized });
    if ("gate" in feedForward) {
      this.#multiply(feedForward.gate, { x: normalized, rows, out: gated });
      this.#kernels.gate(gated, rows, activated);
      this.#multiply(feedForward.output, { x: activated, rows, out: hidden, adds: true });
      return;
    }
    assertInvariant(this.#experts !== undefined, "a layer has experts, and the model has none");
    const { layers, routes } = this.#experts;
    const ids = layers.forward(feedForward, { x: normalized, rows, out: hidden });
    for (const [row, { blocks, position }] of stepRows.entries()) {
      const block = this.#stepRows.toBlock(blocks.at(-1)!);
      routes.write({ block, position }, layerIndex, ids[row]!);
    }
  }

  /** Computes the requested logits, a few rows at a time. */
  #output(rows: readonly StepRow[], onLogits: OnLogits): void {
    const { hidden, normalized, logits, logitRowCount } = this.#work;
    const rowBytes = this.#shape.hiddenSize * 4;
    const logitRows = rows.flatMap(({ partIndex, wantsLogits }, row) =>
      wantsLogits ? [{ partIndex, row }] : [],
    );
    for (let start = 0; start < logitRows.length; start += logitRowCount) {
      const some = logitRows.slice(start, start + logitRowCount);
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
    // Ids that only pad the last panel are never drawn.
    this.#floats.fill(-Infinity, start + vocabularySize, start + outputSize);
    return {
      logits: this.#floats.subarray(start, start + vocabularySize),
      softmax: (temperature) => {
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

  #multiply(
    linear: LinearAddress,
    at: { x: number; rows: number; out: number; adds?: boolean },
  ): void {
    multiplyRows(this.#kernels, linear, at);
  }
}
