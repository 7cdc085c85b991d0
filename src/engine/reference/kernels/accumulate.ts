import { f32x4, sequence, v128 } from "../wasm/instruction.ts";
import type { ModuleBuilder } from "../wasm/module-builder.ts";
import { countUpOnce } from "../wasm/module-builder.ts";

/**
 * Adds the kernel `accumulate(x, end, factor, out)`: `out[i] += factor · x[i]` for the floats from address `x` to `end`.
 * Their number is a multiple of 4, at least 4.
 */
export function addAccumulate(module: ModuleBuilder): void {
  module.add({
    name: "accumulate",
    parameters: { x: "i32", end: "i32", factor: "f32", out: "i32" },
    body(scope, { x, end, factor, out }) {
      const factors = scope.local("v128");
      const product = f32x4.multiply(factors.get, v128.load(x.get));
      return sequence(
        factors.set(f32x4.splat(factor.get)),
        countUpOnce(
          x,
          { end: end.get, step: 16 },
          v128.store(out.get, f32x4.add(v128.load(out.get), product)),
          out.increase(16),
        ),
      );
    },
  });
}
