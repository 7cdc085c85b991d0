import type { Code } from "../wasm/instruction.ts";
import { control, f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { Callee, FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";

/** Outputs that lie side by side in packed weights. */
export const PANEL_WIDTH = 8;

const PANEL_ROW_BYTES = PANEL_WIDTH * 4;
const VECTOR_BYTES = 16;
const VECTORS = PANEL_ROW_BYTES / VECTOR_BYTES;
/** Inner steps written out one after the other; sums must be multiples of it long. */
export const INNER_UNROLL = 4;
/** Rows that share one reading of the weights; what registers allow. */
const TILE_ROWS = 4;

const MULTIPLY_PARAMETERS = Array.from({ length: 11 }, () => "i32" as const);

/**
 * `multiply(x, xStride, rows, innerBytes, weights, panelStride, panels, out, outStride, base,
 * baseStride)`: `out[r][o] = base[r][o] + Σk x[r][k] · weights[k][o]`, strides in bytes.
 *
 * Weights come in panels of 8 outputs: `weights[panel][k][8]`. Each output is summed in one lane,
 * over k in ascending order from zero, and the base is added last, whatever the number of rows: a
 * row's result has the same bits in any batch. `innerBytes` is 4 bytes for each k, and k is a
 * multiple of 4, at least 4. A `baseStride` of 0 adds one row, a bias, to all.
 */
export function addMultiply(module: ModuleBuilder): Callee {
  const full = addTiles(module, { name: "multiply4", rows: TILE_ROWS, panels: 1 });
  // Fewer rows go over more panels at once, so that enough sums are under way to hide each
  // addition's latency.
  const rest = [
    addTiles(module, { name: "multiply1", rows: 1, panels: 4 }),
    addTiles(module, { name: "multiply2", rows: 2, panels: 2 }),
    addTiles(module, { name: "multiply3", rows: 3, panels: 1 }),
  ];
  return module.add({
    name: "multiply",
    parameters: MULTIPLY_PARAMETERS,
    body(scope) {
      const all = MULTIPLY_PARAMETERS.map((_, index) => scope.parameter(index));
      const p = nameParameters(scope);
      const tiledRows = scope.local("i32");
      const skip = (pointer: Variable, stride: Variable): Code =>
        pointer.increase(i32.multiply(tiledRows.get, stride.get));
      const operands = all.map(({ get }) => get);
      return sequence(
        tiledRows.set(i32.and(p.rows.get, i32.constant(-TILE_ROWS))),
        control.ifTrue(tiledRows.get, full(...operands)),
        skip(p.x, p.xStride),
        skip(p.out, p.outStride),
        skip(p.base, p.baseStride),
        p.rows.set(i32.and(p.rows.get, i32.constant(TILE_ROWS - 1))),
        ...rest.map((callee, index) =>
          control.ifTrue(
            i32.isZero(i32.subtract(p.rows.get, i32.constant(index + 1))),
            callee(...operands),
          ),
        ),
      );
    },
  });
}

/** One function for tiles of so many rows, each row going over so many panels at once. */
function addTiles(
  module: ModuleBuilder,
  { name, rows, panels }: { name: string; rows: number; panels: number },
): Callee {
  return module.add({
    name,
    parameters: MULTIPLY_PARAMETERS,
    body(scope) {
      const p = nameParameters(scope);
      const groups = panels === 1 ? [1] : [panels, 1];
      return sequence(...groups.map((count) => panelLoop(scope, p, { rows, panels: count })));
    },
  });
}

type Parameters = ReturnType<typeof nameParameters>;

function nameParameters(scope: FunctionScope) {
  const at = (index: number): Variable => scope.parameter(index);
  return {
    x: at(0),
    xStride: at(1),
    rows: at(2),
    innerBytes: at(3),
    weights: at(4),
    panelStride: at(5),
    panels: at(6),
    out: at(7),
    outStride: at(8),
    base: at(9),
    baseStride: at(10),
  };
}

/** Goes over as many whole groups of panels as are left, and leaves the pointers behind them. */
function panelLoop(
  scope: FunctionScope,
  p: Parameters,
  { rows, panels }: { rows: number; panels: number },
): Code {
  const group = i32.constant(panels);
  return control.block(
    control.loop(
      control.branchIf(1, i32.lessThan(p.panels.get, group)),
      rowLoop(scope, p, { rows, panels }),
      p.weights.increase(i32.multiply(p.panelStride.get, group)),
      p.out.increase(panels * PANEL_ROW_BYTES),
      p.base.increase(panels * PANEL_ROW_BYTES),
      p.panels.set(i32.subtract(p.panels.get, group)),
      control.branch(0),
    ),
  );
}

function rowLoop(
  scope: FunctionScope,
  p: Parameters,
  size: { rows: number; panels: number },
): Code {
  const [row, x, out, base] = scope.locals("i32", 4) as [Variable, Variable, Variable, Variable];
  const stepBy = (stride: Variable): Code => i32.multiply(stride.get, i32.constant(size.rows));
  return sequence(
    row.set(i32.constant(0)),
    x.set(p.x.get),
    out.set(p.out.get),
    base.set(p.base.get),
    countUp(
      row,
      { end: p.rows.get, step: size.rows },
      tile(scope, p, { ...size, x, out, base }),
      x.increase(stepBy(p.xStride)),
      out.increase(stepBy(p.outStride)),
      base.increase(stepBy(p.baseStride)),
    ),
  );
}

function tile(
  scope: FunctionScope,
  p: Parameters,
  at: { rows: number; panels: number; x: Variable; out: Variable; base: Variable },
): Code {
  const { rows, panels } = at;
  const vectors = panels * VECTORS;
  const sums = Array.from({ length: rows }, () => scope.locals("v128", vectors));
  const xs = scope.locals("i32", rows);
  const ws = scope.locals("i32", panels);
  const end = scope.local("i32");
  const pointers = (first: Code, stride: Code, targets: readonly Variable[]): Code =>
    sequence(
      ...targets.map((target, index) =>
        target.set(index === 0 ? first : i32.add(targets[index - 1]!.get, stride)),
      ),
    );
  const step = innerSteps(scope, { sums, xs, ws });
  const [first, ...others] = xs as [Variable, ...Variable[]];
  return sequence(
    pointers(at.x.get, p.xStride.get, xs),
    pointers(p.weights.get, p.panelStride.get, ws),
    end.set(i32.add(first.get, p.innerBytes.get)),
    ...sums.flat().map((sum) => sum.set(f32x4.constant(0))),
    countUpOnce(
      first,
      { end: end.get, step: INNER_UNROLL * 4 },
      step,
      ...others.map((pointer) => pointer.increase(INNER_UNROLL * 4)),
      ...ws.map((pointer) => pointer.increase(INNER_UNROLL * PANEL_ROW_BYTES)),
    ),
    storeSums(scope, p, { sums, out: at.out, base: at.base }),
  );
}

/** `INNER_UNROLL` values of k. */
function innerSteps(
  scope: FunctionScope,
  {
    sums,
    xs,
    ws,
  }: {
    sums: readonly (readonly Variable[])[];
    xs: readonly Variable[];
    ws: readonly Variable[];
  },
): Code {
  const weights = scope.locals("v128", ws.length * VECTORS);
  const splat = scope.local("v128");
  return sequence(
    ...Array.from({ length: INNER_UNROLL }, (_, k) => [
      ...weights.map((weight, index) =>
        weight.set(
          v128.load(
            ws[Math.floor(index / VECTORS)]!.get,
            k * PANEL_ROW_BYTES + (index % VECTORS) * VECTOR_BYTES,
          ),
        ),
      ),
      ...xs.map((x, row) =>
        sequence(
          splat.set(v128.loadSplat(x.get, k * 4)),
          ...sums[row]!.map((sum, index) =>
            sum.set(f32x4.add(sum.get, f32x4.multiply(splat.get, weights[index]!.get))),
          ),
        ),
      ),
    ]).flat(),
  );
}

function storeSums(
  scope: FunctionScope,
  p: Parameters,
  at: { sums: readonly (readonly Variable[])[]; out: Variable; base: Variable },
): Code {
  const [out, base] = scope.locals("i32", 2) as [Variable, Variable];
  return sequence(
    out.set(at.out.get),
    base.set(at.base.get),
    ...at.sums.map((row) =>
      sequence(
        ...row.map((sum, index) =>
          v128.store(
            out.get,
            f32x4.add(v128.load(base.get, index * VECTOR_BYTES), sum.get),
            index * VECTOR_BYTES,
          ),
        ),
        out.increase(p.outStride.get),
        base.increase(p.baseStride.get),
      ),
    ),
  );
}
