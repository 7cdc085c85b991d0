import type { Code } from "../wasm/instruction.ts";
import { f32, f32x4, f64, f64x2, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { Callee, FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";
import { exponential } from "./exponential.ts";
import { sumOfLanes } from "./normalize.ts";

const SOFTMAX_PARAMETERS = { row: "i32", count: "i32", limit: "i32" } as const;

/** The code of a call of `softmaxRow()`. */
export type SoftmaxRowCallee = Callee<typeof SOFTMAX_PARAMETERS>;

/**
 * Adds the kernel `softmaxRow(row, count, limit)`: replaces the first `count` floats by `e^(scale ·
 * (x - max))` and those from there to `limit` by 0, and returns their sum. `limit` is a multiple of
 * 4.
 */
export function addSoftmaxRow(
  module: ModuleBuilder,
  { scale }: { scale: number },
): SoftmaxRowCallee {
  return module.add({
    name: "softmaxRow",
    parameters: SOFTMAX_PARAMETERS,
    result: "f32",
    body(scope, { row, count, limit }) {
      const [at, end, filledEnd] = scope.locals("i32", "i32", "i32");
      const [largest, sum, four] = scope.locals("v128", "v128", "v128");
      const factor = scope.local("v128");
      const e = exponential(scope, { isPositive: false });
      const address = (index: Code): Code =>
        i32.add(row.get, i32.shiftLeft(index, i32.constant(2)));
      const roundUp = i32.and(i32.add(count.get, i32.constant(3)), i32.constant(-4));
      return sequence(
        e.setUp,
        factor.set(f32x4.constant(scale)),
        end.set(address(count.get)),
        filledEnd.set(address(roundUp)),
        at.set(end.get),
        countUp(at, { end: filledEnd.get, step: 4 }, f32.store(at.get, f32.constant(-Infinity))),
        // This maximum skips NaN scores. Their exponentials are NaN too.
        largest.set(maximum(scope, { start: row, end: filledEnd, larger: f32x4.larger })),
        sum.set(f32x4.constant(0)),
        at.set(row.get),
        countUpOnce(
          at,
          { end: filledEnd.get, step: 16 },
          four.set(
            e.of(f32x4.multiply(f32x4.subtract(v128.load(at.get), largest.get), factor.get)),
          ),
          v128.store(at.get, four.get),
          sum.set(f32x4.add(sum.get, four.get)),
        ),
        end.set(address(limit.get)),
        countUp(at, { end: end.get, step: 16 }, v128.store(at.get, f32x4.constant(0))),
        sumOfLanes(sum),
      );
    },
  });
}

/**
 * Returns the code for the largest of at least four floats, in all lanes; `larger` compares lane by
 * lane.
 */
function maximum(
  scope: FunctionScope,
  { start, end, larger }: { start: Variable; end: Variable; larger: typeof f32x4.max },
): Code {
  const at = scope.local("i32");
  const largest = scope.local("v128");
  return sequence(
    at.set(start.get),
    largest.set(f32x4.constant(-Infinity)),
    countUpOnce(
      at,
      { end: end.get, step: 16 },
      largest.set(larger(largest.get, v128.load(at.get))),
    ),
    largest.set(larger(largest.get, f32x4.shuffle(largest.get, [2, 3, 0, 1]))),
    larger(largest.get, f32x4.shuffle(largest.get, [1, 0, 3, 2])),
  );
}

/**
 * Adds the kernel `largest(row, end)`: the largest of the floats from address `row` to `end`, or
 * NaN if one of them is NaN. Their number is a multiple of 4, at least 4.
 */
export function addLargest(module: ModuleBuilder): void {
  module.add({
    name: "largest",
    parameters: { row: "i32", end: "i32" },
    result: "f32",
    body: (scope, { row, end }) =>
      f32x4.lane(maximum(scope, { start: row, end, larger: f32x4.max }), 0),
  });
}

/**
 * Adds the kernel `exponentials(row, end, largest, temperature, out)`: writes `e^((x - largest) /
 * temperature)` for each float from address `row` to `end`, and returns their sum in double
 * precision.
 */
export function addExponentials(module: ModuleBuilder): void {
  module.add({
    name: "exponentials",
    parameters: { row: "i32", end: "i32", largest: "f32", temperature: "f32", out: "i32" },
    result: "f64",
    body(scope, { row, end, largest, temperature, out }) {
      const [four, shift, divisor, low, high] = scope.locals(
        "v128",
        "v128",
        "v128",
        "v128",
        "v128",
      );
      const e = exponential(scope, { isPositive: false });
      return sequence(
        e.setUp,
        shift.set(f32x4.splat(largest.get)),
        divisor.set(f32x4.splat(temperature.get)),
        low.set(f64x2.zero),
        high.set(f64x2.zero),
        countUpOnce(
          row,
          { end: end.get, step: 16 },
          four.set(e.of(f32x4.divide(f32x4.subtract(v128.load(row.get), shift.get), divisor.get))),
          v128.store(out.get, four.get),
          low.set(f64x2.add(low.get, f64x2.fromLowFloats(four.get))),
          high.set(f64x2.add(high.get, f64x2.fromLowFloats(f32x4.shuffle(four.get, [2, 3, 2, 3])))),
          out.increase(16),
        ),
        low.set(f64x2.add(low.get, high.get)),
        f64.add(f64x2.lane(low.get, 0), f64x2.lane(low.get, 1)),
      );
    },
  });
}
