import type { Code } from "../wasm/instruction.ts";
import { control, f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { Callee, FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUpOnce } from "../wasm/module-builder.ts";

/** Outputs that lie side by side in packed weights. */
export const PANEL_WIDTH = 8;

const PANEL_ROW_BYTES = PANEL_WIDTH * 4;
const VECTOR_BYTES = 16;
const VECTORS = PANEL_ROW_BYTES / VECTOR_BYTES;
/** Rows that share one reading of the weights; as many as registers allow. */
const TILE_ROWS = 4;

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

/** How many rows and panels are worked on at once. */
interface TileSize {
  readonly rows: number;
  readonly panels: number;
}

/**
 * `multiply(x, xStride, rows, innerBytes, weights, panelStride, panels, out, outStride, base,
 * baseStride)`: `out[r][o] = base[r][o] + Σk x[r][k] · weights[k][o]`, strides in bytes.
 *
 * Weights come in panels of 8 outputs: `weights[panel][k][8]`. Each output is summed in one lane,
 * over k in ascending order from zero, and the base is added last, whatever the number of rows: a
 * row's result has the same bits in any batch. `innerBytes` is 4 bytes for each k, and there is at
 * least one. A `baseStride` of 0 adds one row, a bias, to all. `out` may be `base`.
 */
export function addMultiply(module: ModuleBuilder): MultiplyCallee {
  const full = addTiles(module, "multiply4", { rows: TILE_ROWS, panels: 1 });
  // Fewer rows go over more panels at once, so that enough sums are under way to hide each
  // addition's latency.
  const rest = [
    addTiles(module, "multiply1", { rows: 1, panels: 2 }),
    addTiles(module, "multiply2", { rows: 2, panels: 2 }),
    addTiles(module, "multiply3", { rows: 3, panels: 1 }),
  ];
  return module.add({
    name: "multiply",
    parameters: PARAMETERS,
    body(scope, p) {
      const tiledRows = scope.local("i32");
      const skip = (pointer: Variable, stride: Variable): Code =>
        pointer.increase(i32.multiply(tiledRows.get, stride.get));
      const operands = passOn(p);
      return sequence(
        tiledRows.set(i32.and(p.rows.get, i32.constant(-TILE_ROWS))),
        control.ifTrue(tiledRows.get, full(operands)),
        skip(p.x, p.xStride),
        skip(p.out, p.outStride),
        skip(p.base, p.baseStride),
        p.rows.set(i32.and(p.rows.get, i32.constant(TILE_ROWS - 1))),
        ...rest.map((callee, index) =>
          control.ifTrue(i32.equal(p.rows.get, i32.constant(index + 1)), callee(operands)),
        ),
      );
    },
  });
}

/** The operands of a call with the caller's own parameters, as they are by then. */
function passOn(parameters: MultiplyParameters): Parameters<MultiplyCallee>[0] {
  const entries = Object.entries(parameters).map(([name, { get }]) => [name, get] as const);
  return Object.fromEntries(entries) as Parameters<MultiplyCallee>[0];
}

/** One function for tiles of so many rows; panels that make no whole group go one by one. */
function addTiles(module: ModuleBuilder, name: string, { rows, panels }: TileSize): MultiplyCallee {
  return module.add({
    name,
    parameters: PARAMETERS,
    body: (scope, p) =>
      sequence(
        ...[...new Set([panels, 1])].map((count) => panelLoop(scope, p, { rows, panels: count })),
      ),
  });
}

/** Goes over as many whole groups of panels as are left, and leaves the pointers behind them. */
function panelLoop(scope: FunctionScope, p: MultiplyParameters, size: TileSize): Code {
  const group = i32.constant(size.panels);
  return control.block(
    control.loop(
      control.branchIf(1, i32.lessThan(p.panels.get, group)),
      rowLoop(scope, p, size),
      p.weights.increase(i32.multiply(p.panelStride.get, group)),
      p.out.increase(size.panels * PANEL_ROW_BYTES),
      p.base.increase(size.panels * PANEL_ROW_BYTES),
      p.panels.set(i32.subtract(p.panels.get, group)),
      control.branch(0),
    ),
  );
}

/** Whole tiles only: a tile of 4 rows leaves the rest to the others, which have no more rows. */
function rowLoop(scope: FunctionScope, p: MultiplyParameters, size: TileSize): Code {
  const [left, x, out, base] = scope.locals("i32", "i32", "i32", "i32");
  const tileRows = i32.constant(size.rows);
  const step = (pointer: Variable, stride: Variable): Code =>
    pointer.increase(i32.multiply(stride.get, tileRows));
  return sequence(
    left.set(p.rows.get),
    x.set(p.x.get),
    out.set(p.out.get),
    base.set(p.base.get),
    control.block(
      control.loop(
        control.branchIf(1, i32.lessThan(left.get, tileRows)),
        tile(scope, p, { ...size, x, out, base }),
        step(x, p.xStride),
        step(out, p.outStride),
        step(base, p.baseStride),
        left.set(i32.subtract(left.get, tileRows)),
        control.branch(0),
      ),
    ),
  );
}

function tile(
  scope: FunctionScope,
  p: MultiplyParameters,
  at: TileSize & { readonly x: Variable; readonly out: Variable; readonly base: Variable },
): Code {
  const pointers = (count: number): readonly Variable[] =>
    Array.from({ length: count }, () => scope.local("i32"));
  const sums = Array.from({ length: at.rows }, () =>
    Array.from({ length: at.panels * VECTORS }, () => scope.local("v128")),
  );
  const xs = pointers(at.rows);
  const ws = pointers(at.panels);
  const end = scope.local("i32");
  const [first, ...others] = xs as [Variable, ...Variable[]];
  return sequence(
    setApart(xs, at.x.get, p.xStride.get),
    setApart(ws, p.weights.get, p.panelStride.get),
    end.set(i32.add(first.get, p.innerBytes.get)),
    ...sums.flat().map((sum) => sum.set(f32x4.constant(0))),
    countUpOnce(
      first,
      { end: end.get, step: 4 },
      addTerms(scope, { sums, xs, ws }),
      ...others.map((pointer) => pointer.increase(4)),
      ...ws.map((pointer) => pointer.increase(PANEL_ROW_BYTES)),
    ),
    storeSums(scope, p, { sums, out: at.out, base: at.base }),
  );
}

/** Sets pointers to the first address and to each one a stride further. */
function setApart(pointers: readonly Variable[], first: Code, stride: Code): Code {
  let address = first;
  const parts: Code[] = [];
  for (const pointer of pointers) {
    parts.push(pointer.set(address));
    address = i32.add(pointer.get, stride);
  }
  return sequence(...parts);
}

/**
 * The next term of all sums of a tile; `sums[row][vector]`. One term a turn of the loop: V8 moves all
 * loads of straight code to its start, and several terms' weights would drive the sums out of the
 * registers.
 */
function addTerms(
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
  const weights = ws.flatMap((pointer) =>
    Array.from({ length: VECTORS }, (_, vector) => ({
      value: scope.local("v128"),
      load: v128.load(pointer.get, vector * VECTOR_BYTES),
    })),
  );
  const x = scope.local("v128");
  return sequence(
    ...weights.map(({ value, load }) => value.set(load)),
    ...sums.map((row, index) =>
      sequence(
        x.set(v128.loadSplat(xs[index]!.get)),
        ...row.map((sum, vector) =>
          sum.set(f32x4.add(sum.get, f32x4.multiply(x.get, weights[vector]!.value.get))),
        ),
      ),
    ),
  );
}

function storeSums(
  scope: FunctionScope,
  p: MultiplyParameters,
  at: {
    readonly sums: readonly (readonly Variable[])[];
    readonly out: Variable;
    readonly base: Variable;
  },
): Code {
  const [out, base] = scope.locals("i32", "i32");
  const storeRow = (row: readonly Variable[]): Code =>
    sequence(
      ...row.map((sum, vector) => {
        const offset = vector * VECTOR_BYTES;
        return v128.store(out.get, f32x4.add(v128.load(base.get, offset), sum.get), offset);
      }),
      out.increase(p.outStride.get),
      base.increase(p.baseStride.get),
    );
  return sequence(out.set(at.out.get), base.set(at.base.get), ...at.sums.map(storeRow));
}
