import type { Code } from "../wasm/instruction.ts";
import { f32x4, i32x4, v128 } from "../wasm/instruction.ts";
import type { FunctionScope } from "../wasm/module-builder.ts";

/** Below it the result is 0: the smallest normal float is near. */
const LOWEST = -87;
const HIGHEST = 88;
const LOG2_E = 1.442_695_040_888_963_4;
/** ln 2 in two parts, so that whole multiples of the first are exact. */
const LN2_HIGH = 0.693_359_375;
const LN2_LOW = -2.121_944_4e-4;
const COEFFICIENTS = [
  1.987_569_15e-4, 1.398_199_950_7e-3, 8.333_451_907_3e-3, 4.166_579_589_4e-2, 1.666_666_545_9e-1,
  5.000_000_120_1e-1,
] as const;
const EXPONENT_BIAS = 127;
const FRACTION_BITS = 23;

/**
 * Code for eˣ of four floats, within 2 units in the last place for -87 to 88; 0 below, e⁸⁸ above.
 * Plain IEEE operations in a fixed order, so all machines agree on the bits.
 *
 * **Source:** Cephes mathematical library, single/expf.c (range reduction and polynomial).
 */
export function exponential(scope: FunctionScope, value: Code): Code {
  const [input, x, power, result] = scope.locals("v128", "v128", "v128", "v128");
  const polynomial = COEFFICIENTS.slice(1).reduce(
    (sum: Code, coefficient) => f32x4.add(f32x4.multiply(sum, x.get), f32x4.constant(coefficient)),
    f32x4.constant(COEFFICIENTS[0]),
  );
  const scale = i32x4.shiftLeft(
    i32x4.add(i32x4.fromFloats(power.get), i32x4.constant(EXPONENT_BIAS)),
    FRACTION_BITS,
  );
  return [
    ...input.set(value),
    ...x.set(f32x4.min(f32x4.max(input.get, f32x4.constant(LOWEST)), f32x4.constant(HIGHEST))),
    ...power.set(f32x4.nearest(f32x4.multiply(x.get, f32x4.constant(LOG2_E)))),
    ...x.set(f32x4.subtract(x.get, f32x4.multiply(power.get, f32x4.constant(LN2_HIGH)))),
    ...x.set(f32x4.subtract(x.get, f32x4.multiply(power.get, f32x4.constant(LN2_LOW)))),
    ...result.set(f32x4.multiply(polynomial, f32x4.multiply(x.get, x.get))),
    ...result.set(f32x4.add(f32x4.add(result.get, x.get), f32x4.constant(1))),
    ...v128.and(
      f32x4.multiply(result.get, scale),
      f32x4.atLeast(input.get, f32x4.constant(LOWEST)),
    ),
  ];
}
