import type { Code } from "../wasm/instruction.ts";
import { control, f32, f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";
import {
  BLOCK_POSITIONS,
  headPartBytes,
  keyPanelStride,
  VALUE_PANEL_STRIDE,
} from "./key-value-block.ts";
import type { KernelShape } from "./kernel-shape.ts";
import type { MultiplyCallee } from "./multiply.ts";
import { PANEL_WIDTH } from "./multiply.ts";
import type { SoftmaxRowCallee } from "./softmax.ts";
import { addSoftmaxRow } from "./softmax.ts";

/** Rows of queries that go over the cached keys together; their scores stay in the core's cache. */
const TILE_ROWS = 32;

const BLOCK_SCORE_BYTES = BLOCK_POSITIONS * 4;

/** Tokens whose queries go over the cached keys together. */
function tileTokens({ groupSize }: KernelShape): number {
  return Math.max(1, Math.floor(TILE_ROWS / groupSize));
}

/** Bytes of working memory that `attend()` needs for so many positions. */
export function attendScratchBytes(shape: KernelShape, positionCount: number): number {
  const blocks = Math.ceil(positionCount / BLOCK_POSITIONS) + 1;
  const rows = tileTokens(shape) * shape.groupSize;
  return rows * (4 * shape.headSize + blocks * BLOCK_SCORE_BYTES + 4);
}

/**
 * `attend(queries, tokens, firstCount, table, keys, out, outStride, scratch, zeros)`: attention of
 * one head of keys and values and all heads of queries that share it, over consecutive tokens of one
 * sequence. Token t sees the first `firstCount + t` positions. `table` lists the addresses of the
 * sequence's blocks, `keys` is the offset of the head's keys in each; `out` receives the group's
 * heads side by side; `zeros` are `headSize` zeros, 16 at least.
 *
 * Each score, sum and weighted sum is added up in the order of positions, by blocks counted from the
 * sequence's start: neither other sequences nor how many tokens come at once change a bit.
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
  const tileSize = tileTokens(shape);
  module.add({
    name: "attend",
    parameters: {
      queries: "i32",
      tokens: "i32",
      firstCount: "i32",
      table: "i32",
      keys: "i32",
      out: "i32",
      outStride: "i32",
      scratch: "i32",
      zeros: "i32",
    },
    body(scope, p) {
      const [inTile, rows, blocks, scoreStride] = scope.locals("i32", "i32", "i32", "i32");
      const [sums, weighted, scores] = scope.locals("i32", "i32", "i32");
      const tile = { ...p, inTile, rows, blocks, scoreStride, sums, weighted, scores };
      const lastCount = i32.add(p.firstCount.get, i32.subtract(inTile.get, i32.constant(1)));
      return sequence(
        sums.set(p.scratch.get),
        weighted.set(i32.add(sums.get, i32.constant(tileSize * groupSize * 4))),
        scores.set(i32.add(weighted.get, i32.constant(tileSize * groupSize * headSize * 4))),
        control.block(
          control.loop(
            control.branchIf(1, i32.equal(p.tokens.get, i32.constant(0))),
            inTile.set(i32.smaller(p.tokens.get, i32.constant(tileSize))),
            rows.set(i32.multiply(inTile.get, i32.constant(groupSize))),
            blocks.set(divideUp(lastCount)),
            // One block more than needed: rows a power of two apart would compete for the same
            // few places of the core's cache.
            scoreStride.set(
              i32.multiply(i32.add(blocks.get, i32.constant(1)), i32.constant(BLOCK_SCORE_BYTES)),
            ),
            scoreBlocks(scope, tile, { multiply, shape }),
            softmaxRows(scope, tile, { softmaxRow, shape }),
            sumValues(scope, tile, { multiply, shape }),
            spread(scope, tile, shape),
            p.firstCount.increase(inTile.get),
            p.queries.increase(i32.multiply(rows.get, i32.constant(headSize * 4))),
            p.tokens.set(i32.subtract(p.tokens.get, inTile.get)),
            control.branch(0),
          ),
        ),
      );
    },
  });
}

/** How many blocks so many positions take. */
function divideUp(positions: Code): Code {
  return i32.shiftRight(
    i32.add(positions, i32.constant(BLOCK_POSITIONS - 1)),
    i32.constant(Math.log2(BLOCK_POSITIONS)),
  );
}

/** The variables of a tile: the tokens in work, and where its working memory lies. */
interface Tile {
  readonly queries: Variable;
  readonly firstCount: Variable;
  readonly table: Variable;
  readonly keys: Variable;
  readonly out: Variable;
  readonly outStride: Variable;
  readonly zeros: Variable;
  readonly inTile: Variable;
  readonly rows: Variable;
  readonly blocks: Variable;
  readonly scoreStride: Variable;
  /** `sums[row]` */
  readonly sums: Variable;
  /** `weighted[row][headSize]` */
  readonly weighted: Variable;
  /** `scores[row][position]` */
  readonly scores: Variable;
}

/** Runs the body for each block, with its address and its offset in a row of scores. */
function eachBlock(
  scope: FunctionScope,
  { table, blocks }: Tile,
  body: (block: Code, scoreOffset: Variable) => Code,
): Code {
  const [index, scoreOffset] = scope.locals("i32", "i32");
  const entry = i32.add(table.get, i32.shiftLeft(index.get, i32.constant(2)));
  return sequence(
    index.set(i32.constant(0)),
    scoreOffset.set(i32.constant(0)),
    countUp(
      index,
      { end: blocks.get, step: 1 },
      body(i32.load(entry), scoreOffset),
      scoreOffset.increase(BLOCK_SCORE_BYTES),
    ),
  );
}

function scoreBlocks(
  scope: FunctionScope,
  tile: Tile,
  { multiply, shape: { headSize } }: { multiply: MultiplyCallee; shape: KernelShape },
): Code {
  const headBytes = i32.constant(headSize * 4);
  return eachBlock(scope, tile, (block, scoreOffset) =>
    multiply({
      x: tile.queries.get,
      xStride: headBytes,
      rows: tile.rows.get,
      innerBytes: headBytes,
      weights: i32.add(block, tile.keys.get),
      panelStride: i32.constant(keyPanelStride(headSize)),
      panels: i32.constant(BLOCK_POSITIONS / PANEL_WIDTH),
      out: i32.add(tile.scores.get, scoreOffset.get),
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
  const [token, head, row, sum] = scope.locals("i32", "i32", "i32", "i32");
  const count = i32.add(tile.firstCount.get, token.get);
  return sequence(
    row.set(tile.scores.get),
    sum.set(tile.sums.get),
    token.set(i32.constant(0)),
    countUp(
      token,
      { end: tile.inTile.get, step: 1 },
      head.set(i32.constant(0)),
      countUp(
        head,
        { end: i32.constant(groupSize), step: 1 },
        f32.store(
          sum.get,
          softmaxRow({
            row: row.get,
            count,
            limit: i32.multiply(tile.blocks.get, i32.constant(BLOCK_POSITIONS)),
          }),
        ),
        row.increase(tile.scoreStride.get),
        sum.increase(4),
      ),
    ),
  );
}

/** The first block adds to zeros, each further one to what is there. */
function sumValues(
  scope: FunctionScope,
  tile: Tile,
  { multiply, shape: { headSize } }: { multiply: MultiplyCallee; shape: KernelShape },
): Code {
  const [base, baseStride] = scope.locals("i32", "i32");
  const headBytes = i32.constant(headSize * 4);
  const valuesOffset = i32.constant(headPartBytes(headSize));
  return sequence(
    base.set(tile.zeros.get),
    baseStride.set(i32.constant(0)),
    eachBlock(scope, tile, (block, scoreOffset) =>
      sequence(
        multiply({
          x: i32.add(tile.scores.get, scoreOffset.get),
          xStride: tile.scoreStride.get,
          rows: tile.rows.get,
          innerBytes: i32.constant(BLOCK_SCORE_BYTES),
          weights: i32.add(i32.add(block, tile.keys.get), valuesOffset),
          panelStride: i32.constant(VALUE_PANEL_STRIDE),
          panels: i32.constant(headSize / PANEL_WIDTH),
          out: tile.weighted.get,
          outStride: headBytes,
          base: base.get,
          baseStride: baseStride.get,
        }),
        base.set(tile.weighted.get),
        baseStride.set(headBytes),
      ),
    ),
  );
}

/** Divides the weighted sums by the weights' sums and hands each token its heads. */
function spread(scope: FunctionScope, tile: Tile, { groupSize, headSize }: KernelShape): Code {
  const [token, at, from, to, sum] = scope.locals("i32", "i32", "i32", "i32", "i32");
  const [head, divisor] = [scope.local("i32"), scope.local("v128")];
  const headBytes = headSize * 4;
  return sequence(
    from.set(tile.weighted.get),
    sum.set(tile.sums.get),
    token.set(i32.constant(0)),
    countUp(
      token,
      { end: tile.inTile.get, step: 1 },
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
        from.increase(headBytes),
        to.increase(headBytes),
        sum.increase(4),
      ),
      tile.out.increase(tile.outStride.get),
    ),
  );
}
