import type { Code } from "../wasm/instruction.ts";
import { control, f32, f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";
import { BLOCK_POSITIONS, headPartBytes, VALUE_PANEL_STRIDE } from "./key-value-block.ts";
import type { KernelShape } from "./kernel-shape.ts";
import type { MultiplyCallee } from "./multiply.ts";
import { padToPanel, PANEL_WIDTH } from "./multiply.ts";
import { ROW_ENTRY_BYTES } from "./rotate.ts";
import type { SoftmaxRowCallee } from "./softmax.ts";
import { addSoftmaxRow } from "./softmax.ts";

/**
 * Bytes of one entry of the list of spans: the address of a block, the first query of the tile that
 * sees it, the number of consecutive queries that do, and the offset of the block's scores in a
 * query's row of scores.
 */
export const SPAN_ENTRY_BYTES = 16;

/** Bytes of a block's scores in a query's row of scores. */
export const BLOCK_SCORE_BYTES = BLOCK_POSITIONS * 4;

/** Number of queries that read the cached keys together. Their scores stay in the core's cache. */
const TILE_QUERIES = 32;

/** Returns the number of tokens in a tile. Each token has `groupSize` queries, and a tile `TILE_QUERIES` at most. */
export function tileRowCount({ groupSize }: Pick<KernelShape, "groupSize">): number {
  return Math.max(1, Math.floor(TILE_QUERIES / groupSize));
}

/** Returns the bytes of working memory that `attend()` needs for `positionCount` positions. */
export function attendScratchBytes(shape: KernelShape, positionCount: number): number {
  const blocks = Math.ceil(positionCount / BLOCK_POSITIONS) + 1;
  const queries = tileRowCount(shape) * shape.groupSize;
  return queries * (4 + 4 * padToPanel(shape.headSize) + blocks * BLOCK_SCORE_BYTES);
}

/**
 * Adds the kernel `attend(queries, rows, table, spans, spanEnd, limit, keys, values, out,
 * outStride, scratch, zeros)`: attention of one head of keys and values, and of all heads of
 * queries that share it, for a tile of tokens of any sequences.
 *
 * - `table` is the rows' part of the table of rows, which has the number of positions that each
 *   token sees.
 * - `spans` lists the queries that see each block, in order for each query. Sequences that share a
 *   block read it together.
 * - `limit` is the number of positions of the longest sequence's blocks.
 * - `keys` and `values` are the offsets of the head's parts.
 * - `out` receives the heads next to each other.
 * - `zeros` points to `headSize` zeros, rounded up to a full panel.
 *
 * Each score, sum and weighted sum is added up in the order of positions, by blocks counted from
 * the sequence's start. Other sequences and the number of tokens in a step do not change a bit.
 *
 * **Source:** Vaswani et al., "Attention Is All You Need", 2017; heads shared as in Ainslie et al.,
 * "GQA", 2023.
 */
export function addAttend(
  module: ModuleBuilder,
  { shape, multiply }: { shape: KernelShape; multiply: MultiplyCallee },
): void {
  const { groupSize, headSize } = shape;
  const softmaxRow = addSoftmaxRow(module, { scale: 1 / Math.sqrt(headSize) });
  const queryCount = tileRowCount(shape) * groupSize;
  module.add({
    name: "attend",
    parameters: {
      queries: "i32",
      rows: "i32",
      table: "i32",
      spans: "i32",
      spanEnd: "i32",
      limit: "i32",
      keys: "i32",
      values: "i32",
      out: "i32",
      outStride: "i32",
      scratch: "i32",
      zeros: "i32",
    },
    body(scope, p) {
      const [sums, weighted, scores, scoreStride] = scope.locals("i32", "i32", "i32", "i32");
      const tile = { ...p, sums, weighted, scores, scoreStride };
      // One block more than needed: rows whose distance is a power of two would compete for the
      // same few lines of the core's cache.
      const strideBlocks = i32.add(p.limit.get, i32.constant(BLOCK_POSITIONS));
      return sequence(
        sums.set(p.scratch.get),
        weighted.set(i32.add(sums.get, i32.constant(queryCount * 4))),
        scores.set(i32.add(weighted.get, i32.constant(queryCount * padToPanel(headSize) * 4))),
        scoreStride.set(i32.shiftLeft(strideBlocks, i32.constant(2))),
        scoreSpans(scope, tile, { multiply, shape }),
        softmaxRows(scope, tile, { softmaxRow, shape }),
        sumValues(scope, tile, { multiply, shape }),
        spread(scope, tile, shape),
      );
    },
  });
}

/** The variables of a tile: the parameters and the addresses of its working memory. */
interface Tile {
  readonly queries: Variable;
  readonly rows: Variable;
  readonly table: Variable;
  readonly spans: Variable;
  readonly spanEnd: Variable;
  readonly limit: Variable;
  readonly keys: Variable;
  readonly values: Variable;
  readonly out: Variable;
  readonly outStride: Variable;
  readonly zeros: Variable;
  /** `sums[query]` */
  readonly sums: Variable;
  /** `weighted[query][headSize]`, rows rounded up to full panels */
  readonly weighted: Variable;
  /** `scores[query][position]` */
  readonly scores: Variable;
  readonly scoreStride: Variable;
}

/** An entry of the list of spans, with addresses computed from it. */
interface Span {
  /** The address of the block's keys or values of the head. */
  readonly part: Variable;
  readonly queryCount: Code;
  readonly scoreOffset: Code;
  /** The address of the block's scores in the first query's row of scores. */
  readonly scores: Code;
  /** Returns the address of the first query's row in an array with `rowBytes` bytes per query. */
  rowOf(array: Variable, rowBytes: number): Code;
}

/** Runs the body for each span, with its block in the part of memory at `partOffset`. */
function eachSpan(
  scope: FunctionScope,
  tile: Tile,
  partOffset: Variable,
  body: (span: Span) => Code,
): Code {
  const [entry, part] = scope.locals("i32", "i32");
  const firstQuery = i32.load(entry.get, 4);
  const scoreOffset = i32.load(entry.get, 12);
  const span: Span = {
    part,
    queryCount: i32.load(entry.get, 8),
    scoreOffset,
    scores: i32.add(
      i32.add(tile.scores.get, i32.multiply(firstQuery, tile.scoreStride.get)),
      scoreOffset,
    ),
    rowOf: (array, rowBytes) =>
      i32.add(array.get, i32.multiply(firstQuery, i32.constant(rowBytes))),
  };
  return sequence(
    entry.set(tile.spans.get),
    countUp(
      entry,
      { end: tile.spanEnd.get, step: SPAN_ENTRY_BYTES },
      part.set(i32.add(i32.load(entry.get), partOffset.get)),
      body(span),
    ),
  );
}

function scoreSpans(
  scope: FunctionScope,
  tile: Tile,
  { multiply, shape: { headSize } }: { multiply: MultiplyCallee; shape: KernelShape },
): Code {
  const headBytes = i32.constant(headSize * 4);
  return eachSpan(scope, tile, tile.keys, (span) =>
    multiply({
      x: span.rowOf(tile.queries, headSize * 4),
      xStride: headBytes,
      rows: span.queryCount,
      innerBytes: headBytes,
      weights: span.part.get,
      panelStride: i32.constant(headPartBytes(headSize)),
      panels: i32.constant(BLOCK_POSITIONS / PANEL_WIDTH),
      out: span.scores,
      outStride: tile.scoreStride.get,
      base: tile.zeros.get,
      baseStride: i32.constant(0),
    }),
  );
}

function softmaxRows(
  scope: FunctionScope,
  tile: Tile,
  { softmaxRow, shape: { groupSize } }: { softmaxRow: SoftmaxRowCallee; shape: KernelShape },
): Code {
  const [row, head, entry, scores, sum] = scope.locals("i32", "i32", "i32", "i32", "i32");
  return sequence(
    scores.set(tile.scores.get),
    sum.set(tile.sums.get),
    entry.set(tile.table.get),
    row.set(i32.constant(0)),
    countUp(
      row,
      { end: tile.rows.get, step: 1 },
      head.set(i32.constant(0)),
      countUp(
        head,
        { end: i32.constant(groupSize), step: 1 },
        f32.store(
          sum.get,
          softmaxRow({
            row: scores.get,
            count: i32.load(entry.get, 12),
            limit: tile.limit.get,
          }),
        ),
        scores.increase(tile.scoreStride.get),
        sum.increase(4),
      ),
      entry.increase(ROW_ENTRY_BYTES),
    ),
  );
}

/** Adds the first block of a sequence to zeros, and each further block to the sum so far. */
function sumValues(
  scope: FunctionScope,
  tile: Tile,
  { multiply, shape: { headSize } }: { multiply: MultiplyCallee; shape: KernelShape },
): Code {
  const [out, base, baseStride] = scope.locals("i32", "i32", "i32");
  const rowBytes = padToPanel(headSize) * 4;
  const stride = i32.constant(rowBytes);
  return eachSpan(scope, tile, tile.values, (span) =>
    sequence(
      out.set(span.rowOf(tile.weighted, rowBytes)),
      base.set(out.get),
      baseStride.set(stride),
      control.ifTrue(
        i32.equal(span.scoreOffset, i32.constant(0)),
        base.set(tile.zeros.get),
        baseStride.set(i32.constant(0)),
      ),
      multiply({
        x: span.scores,
        xStride: tile.scoreStride.get,
        rows: span.queryCount,
        innerBytes: i32.constant(BLOCK_SCORE_BYTES),
        weights: span.part.get,
        panelStride: i32.constant(VALUE_PANEL_STRIDE),
        panels: i32.constant(padToPanel(headSize) / PANEL_WIDTH),
        out: out.get,
        outStride: stride,
        base: base.get,
        baseStride: baseStride.get,
      }),
    ),
  );
}

/** Divides the weighted sums by the sums of weights and writes each token's heads. */
function spread(scope: FunctionScope, tile: Tile, { groupSize, headSize }: KernelShape): Code {
  const [row, at, from, to, sum] = scope.locals("i32", "i32", "i32", "i32", "i32");
  const [head, divisor] = [scope.local("i32"), scope.local("v128")];
  const headBytes = headSize * 4;
  return sequence(
    from.set(tile.weighted.get),
    sum.set(tile.sums.get),
    row.set(i32.constant(0)),
    countUp(
      row,
      { end: tile.rows.get, step: 1 },
      to.set(tile.out.get),
      head.set(i32.constant(0)),
      countUp(
        head,
        { end: i32.constant(groupSize), step: 1 },
        divisor.set(v128.loadSplat(sum.get)),
        at.set(i32.constant(0)),
        countUpOnce(
          at,
          { end: i32.constant(headBytes), step: 16 },
          v128.store(
            i32.add(to.get, at.get),
            f32x4.divide(v128.load(i32.add(from.get, at.get)), divisor.get),
          ),
        ),
        from.increase(padToPanel(headSize) * 4),
        to.increase(headBytes),
        sum.increase(4),
      ),
      tile.out.increase(tile.outStride.get),
    ),
  );
}
