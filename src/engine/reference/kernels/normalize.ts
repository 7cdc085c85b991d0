import type { Code } from "../wasm/instruction.ts";
import { f32, f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";

/**
 * Adds the kernel `name(x, xStride, rows, weights, out, outStride)`: divides each row of `width`
 * floats by its root mean square and multiplies it with the weights. `width` is a multiple of 4;
 * `out` may be `x`.
 *
 * **Source:** Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019; epsilon placed as
 * in huggingface/transformers src/transformers/models/llama/modeling_llama.py (LlamaRMSNorm).
 */
export function addNormalize(
  module: ModuleBuilder,
  { name, width, epsilon }: { name: string; width: number; epsilon: number },
): void {
  module.add({
    name,
    parameters: {
      x: "i32",
      xStride: "i32",
      rows: "i32",
      weights: "i32",
      out: "i32",
      outStride: "i32",
    },
    body(scope, { x, xStride, rows, weights, out, outStride }) {
      const row = scope.local("i32");
      const scale = scope.local("v128");
      return countUp(
        row,
        { end: rows.get, step: 1 },
        scale.set(f32x4.splat(inverseRootMeanSquare(scope, { x, width, epsilon }))),
        scaleRow(scope, { x, weights, out, scale, width }),
        x.increase(xStride.get),
        out.increase(outStride.get),
      );
    },
  });
}

function inverseRootMeanSquare(
  scope: FunctionScope,
  { x, width, epsilon }: { x: Variable; width: number; epsilon: number },
): Code {
  const [sum, four] = scope.locals("v128", "v128");
  const at = scope.local("i32");
  const loop = sequence(
    sum.set(f32x4.constant(0)),
    at.set(i32.constant(0)),
    countUpOnce(
      at,
      { end: i32.constant(width * 4), step: 16 },
      four.set(v128.load(i32.add(x.get, at.get))),
      sum.set(f32x4.add(sum.get, f32x4.multiply(four.get, four.get))),
    ),
  );
  const mean = f32.divide(sumOfLanes(sum), f32.constant(width));
  return sequence(
    loop,
    f32.divide(f32.constant(1), f32.squareRoot(f32.add(mean, f32.constant(epsilon)))),
  );
}

/** Returns the code for the sum of four lanes, in a fixed order. Changes the variable. */
export function sumOfLanes(sum: Variable): Code {
  return sequence(
    sum.set(f32x4.add(sum.get, f32x4.shuffle(sum.get, [2, 3, 2, 3]))),
    sum.set(f32x4.add(sum.get, f32x4.shuffle(sum.get, [1, 1, 1, 1]))),
    f32x4.lane(sum.get, 0),
  );
}

function scaleRow(
  scope: FunctionScope,
  {
    x,
    weights,
    out,
    scale,
    width,
  }: { x: Variable; weights: Variable; out: Variable; scale: Variable; width: number },
): Code {
  const at = scope.local("i32");
  const scaled = f32x4.multiply(v128.load(i32.add(x.get, at.get)), scale.get);
  return sequence(
    at.set(i32.constant(0)),
    countUpOnce(
      at,
      { end: i32.constant(width * 4), step: 16 },
      v128.store(
        i32.add(out.get, at.get),
        f32x4.multiply(scaled, v128.load(i32.add(weights.get, at.get))),
      ),
    ),
  );
}
