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
 * Bytes of a span's entry: the address of a block, the tile's first query that sees it, how many
 * consecutive ones do, and the offset of the block's scores in a query's row of scores.
 */
export const SPAN_ENTRY_BYTES = 16;

/** Bytes of a block's scores in a query's row of scores. */
export const BLOCK_SCORE_BYTES = BLOCK_POSITIONS * 4;

/** Queries that go over the cached keys together: their scores stay in the core's cache. */
const TILE_QUERIES = 32;

/** Tokens that go over the cached keys together. */
export function tileRowCount({ groupSize }: Pick<KernelShape, "groupSize">): number {
  return Math.max(1, Math.floor(TILE_QUERIES / groupSize));
}

/** Bytes of working memory that `attend()` needs for so many positions. */
export function attendScratchBytes(shape: KernelShape, positionCount: number): number {
  const blocks = Math.ceil(positionCount / BLOCK_POSITIONS) + 1;
  const queries = tileRowCount(shape) * shape.groupSize;
  return queries * (4 + 4 * padToPanel(shape.headSize) + blocks * BLOCK_SCORE_BYTES);
}

/**
 * `attend(queries, rows, table, spans, spanEnd, limit, keys, values, out, outStride, scratch,
 * zeros)`: attention of one head of keys and values and all heads of queries that share it, for a
 * tile of tokens of any sequences.
 *
 * `table` is the rows' part of the table of rows, which says how many positions each token sees.
 * `spans` lists which queries see which blocks, each query's in order; those of sequences that
 * share a block go over it together. `limit` is the number of positions of the longest sequence's
 * blocks.
 * `keys` and `values` are the offsets of the head's parts; `out` receives the heads side by side;
 * `zeros` are `headSize` zeros, and as many as fill a panel.
 *
 * Each score, sum and weighted sum is added up in the order of positions, by blocks counted from
 * the sequence's start: neither other sequences nor how many tokens come at once change a bit.
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
      // A block more than needed: rows a power of two apart would compete for the same few places
      // of the core's cache.
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

/** The variables of a tile: what it is given, and where its working memory lies. */
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
  /** `weighted[query][headSize]`, rows as long as whole panels */
  readonly weighted: Variable;
  /** `scores[query][position]` */
  readonly scores: Variable;
  readonly scoreStride: Variable;
}

/** What a span says, with addresses made of it. */
interface Span {
  /** The block's keys or values of the head. */
  readonly part: Variable;
  readonly queryCount: Code;
  readonly scoreOffset: Code;
  /** The first query's row of scores, where the block's begin. */
  readonly scores: Code;
  /** The first query's row in an array with so many bytes for each query. */
  rowOf(array: Variable, rowBytes: number): Code;
}

/** Runs the body for each span, with its block in the part of memory at an offset. */
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

/** A sequence's first block adds to zeros, each further one to what is there. */
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

/** Divides the weighted sums by the weights' sums and hands each token its heads. */
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
