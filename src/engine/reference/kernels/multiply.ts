import type { Code } from "../wasm/instruction.ts";
import { control, f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { Callee, FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUpOnce } from "../wasm/module-builder.ts";

/** Number of outputs next to each other in packed weights. Those of one input fill a cache line. */
export const PANEL_WIDTH = 16;

/** Bytes of a panel's weights for one input. */
export const PANEL_ROW_BYTES = PANEL_WIDTH * 4;

/** Rounds a number of outputs up to full panels. */
export function padToPanel(outputs: number): number {
  return Math.ceil(outputs / PANEL_WIDTH) * PANEL_WIDTH;
}

const VECTOR_BYTES = 16;
/** Number of rows that share one reading of the weights: as many as the registers allow. */
const TILE_ROWS = 4;
/** Offsets of a panel's vectors, in bytes. */
const FULL_PANEL = [0, VECTOR_BYTES, 2 * VECTOR_BYTES, 3 * VECTOR_BYTES];
/** Offsets of the vectors of a panel's halves, in bytes. */
const HALVES = [FULL_PANEL.slice(0, 2), FULL_PANEL.slice(2)];

const PARAMETERS = {
  x: "i32",
  xStride: "i32",
  rows: "i32",
  innerBytes: "i32",
  weights: "i32",
  panelStride: "i32",
  panels: "i32",
  out: "i32",
  outStride: "i32",
  base: "i32",
  baseStride: "i32",
} as const;

/** The code of a call of `multiply()`. */
export type MultiplyCallee = Callee<typeof PARAMETERS>;

type MultiplyParameters = { readonly [Name in keyof typeof PARAMETERS]: Variable };

/** The addresses of a row's input, result and addend. */
interface RowPointers {
  readonly x: Variable;
  readonly out: Variable;
  readonly base: Variable;
}

/**
 * Adds the kernel `multiply(x, xStride, rows, innerBytes, weights, panelStride, panels, out,
 * outStride, base, baseStride)`: `out[r][o] = base[r][o] + Σk x[r][k] · weights[k][o]`, strides in
 * bytes.
 *
 * Weights are in panels of 16 outputs: `weights[panel][k][16]`. Each output is summed in one lane,
 * over k in ascending order from zero, and the base is added last. A row's result therefore has the
 * same bits in any batch.
 *
 * `innerBytes` is 4 bytes for each k, and there is at least one k. A `baseStride` of 0 adds one
 * row, a bias, to all rows. `out` may be `base`.
 */
export function addMultiply(module: ModuleBuilder): MultiplyCallee {
  return module.add({
    name: "multiply",
    parameters: PARAMETERS,
    body(scope, p) {
      const [tiledRows, restRows] = scope.locals("i32", "i32");
      const [x, out, base] = scope.locals("i32", "i32", "i32");
      const rest: RowPointers = { x, out, base };
      const afterTiles = (start: Variable, stride: Variable): Code =>
        i32.add(start.get, i32.multiply(tiledRows.get, stride.get));
      const ifRest = (rows: number, body: Code): Code =>
        control.ifTrue(i32.equal(restRows.get, i32.constant(rows)), body);
      return sequence(
        tiledRows.set(i32.and(p.rows.get, i32.constant(-TILE_ROWS))),
        restRows.set(i32.and(p.rows.get, i32.constant(TILE_ROWS - 1))),
        x.set(afterTiles(p.x, p.xStride)),
        out.set(afterTiles(p.out, p.outStride)),
        base.set(afterTiles(p.base, p.baseStride)),
        control.loop(
          control.ifTrue(
            tiledRows.get,
            ...HALVES.map((vectors) => eachTile(scope, p, { tiledRows, vectors })),
          ),
          // One or two rows take a full panel at once. That gives enough parallel sums to hide the
          // latency of additions, and reads the weights sequentially.
          ifRest(1, tile(scope, p, { rows: 1, vectors: FULL_PANEL, at: rest })),
          ifRest(2, tile(scope, p, { rows: 2, vectors: FULL_PANEL, at: rest })),
          ifRest(
            3,
            HALVES.map((vectors) => tile(scope, p, { rows: 3, vectors, at: rest })),
          ),
          p.weights.increase(p.panelStride.get),
          ...[p.out, p.base, out, base].map((pointer) => pointer.increase(PANEL_ROW_BYTES)),
          p.panels.set(i32.subtract(p.panels.get, i32.constant(1))),
          control.branchIf(0, p.panels.get),
        ),
      );
    },
  });
}

/** Returns the code for all full tiles and some vectors of a panel. There is at least one tile. */
function eachTile(
  scope: FunctionScope,
  p: MultiplyParameters,
  { tiledRows, vectors }: { tiledRows: Variable; vectors: readonly number[] },
): Code {
  const [row, x, out, base] = scope.locals("i32", "i32", "i32", "i32");
  const step = (pointer: Variable, stride: Variable): Code =>
    pointer.increase(i32.multiply(stride.get, i32.constant(TILE_ROWS)));
  return sequence(
    row.set(i32.constant(0)),
    x.set(p.x.get),
    out.set(p.out.get),
    base.set(p.base.get),
    countUpOnce(
      row,
      { end: tiledRows.get, step: TILE_ROWS },
      tile(scope, p, { rows: TILE_ROWS, vectors, at: { x, out, base } }),
      step(x, p.xStride),
      step(out, p.outStride),
      step(base, p.baseStride),
    ),
  );
}

/** Returns the code that computes a tile of the product: `rows` rows, and the vectors of a panel at some offsets. */
function tile(
  scope: FunctionScope,
  p: MultiplyParameters,
  { rows, vectors, at }: { rows: number; vectors: readonly number[]; at: RowPointers },
): Code {
  const sums = Array.from({ length: rows }, () => vectors.map(() => scope.local("v128")));
  const xs = Array.from({ length: rows }, () => scope.local("i32"));
  const [end, weights] = scope.locals("i32", "i32");
  const [first, ...others] = xs as [Variable, ...Variable[]];
  return sequence(
    first.set(at.x.get),
    ...others.map((pointer, index) => pointer.set(i32.add(xs[index]!.get, p.xStride.get))),
    weights.set(p.weights.get),
    end.set(i32.add(first.get, p.innerBytes.get)),
    ...sums.flat().map((sum) => sum.set(f32x4.constant(0))),
    countUpOnce(
      first,
      { end: end.get, step: 4 },
      addTerm(scope, { sums, xs, weights, vectors }),
      ...others.map((pointer) => pointer.increase(4)),
      weights.increase(PANEL_ROW_BYTES),
    ),
    storeSums(scope, p, { sums, vectors, at }),
  );
}

/**
 * Returns the code that adds the next term to all sums of a tile; `sums[row][vector]`.
 *
 * One term per iteration: V8 moves all loads of straight-line code to its start, so the weights of
 * several terms would displace the sums from the registers.
 */
function addTerm(
  scope: FunctionScope,
  {
    sums,
    xs,
    weights,
    vectors,
  }: {
    sums: readonly (readonly Variable[])[];
    xs: readonly Variable[];
    weights: Variable;
    vectors: readonly number[];
  },
): Code {
  const loaded = vectors.map((offset) => ({ offset, value: scope.local("v128") }));
  const x = scope.local("v128");
  return sequence(
    ...loaded.map(({ offset, value }) => value.set(v128.load(weights.get, offset))),
    ...sums.map((row, index) =>
      sequence(
        x.set(v128.loadSplat(xs[index]!.get)),
        ...row.map((sum, vector) =>
          sum.set(f32x4.add(sum.get, f32x4.multiply(x.get, loaded[vector]!.value.get))),
        ),
      ),
    ),
  );
}

function storeSums(
  scope: FunctionScope,
  p: MultiplyParameters,
  {
    sums,
    vectors,
    at,
  }: {
    sums: readonly (readonly Variable[])[];
    vectors: readonly number[];
    at: RowPointers;
  },
): Code {
  const [out, base] = scope.locals("i32", "i32");
  const storeRow = (row: readonly Variable[]): Code =>
    sequence(
      ...row.map((sum, index) => {
        const offset = vectors[index];
        return v128.store(out.get, f32x4.add(v128.load(base.get, offset), sum.get), offset);
      }),
      out.increase(p.outStride.get),
      base.increase(p.baseStride.get),
    );
  return sequence(out.set(at.out.get), base.set(at.base.get), ...sums.map(storeRow));
}
