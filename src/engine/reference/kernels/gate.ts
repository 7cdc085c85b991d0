import { f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { ModuleBuilder } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";
import { exponential } from "./exponential.ts";

/**
 * Adds the kernel `name(x, rows, out)`: `out[r][i] = silu(x[r][i]) · x[r][width + i]`, rows without
 * gaps. `width` is a multiple of 4.
 *
 * **Source:** Shazeer, "GLU Variants Improve Transformer", 2020 (SwiGLU).
 */
export function addGate(
  module: ModuleBuilder,
  { name, width }: { name: string; width: number },
): void {
  const rowBytes = width * 4;
  module.add({
    name,
    parameters: { x: "i32", rows: "i32", out: "i32" },
    body(scope, { x, rows, out }) {
      const [row, at, from] = scope.locals("i32", "i32", "i32");
      const gate = scope.local("v128");
      const one = scope.local("v128");
      const e = exponential(scope, { isPositive: true });
      const divisor = f32x4.add(one.get, e.of(f32x4.negate(gate.get)));
      const loop = countUp(
        row,
        { end: rows.get, step: 1 },
        at.set(i32.constant(0)),
        countUpOnce(
          at,
          { end: i32.constant(rowBytes), step: 16 },
          from.set(i32.add(x.get, at.get)),
          gate.set(v128.load(from.get)),
          v128.store(
            i32.add(out.get, at.get),
            f32x4.multiply(f32x4.divide(gate.get, divisor), v128.load(from.get, rowBytes)),
          ),
        ),
        sequence(x.increase(2 * rowBytes), out.increase(rowBytes)),
      );
      return sequence(one.set(f32x4.constant(1)), e.setUp, loop);
    },
  });
}
