import type { Code } from "../wasm/instruction.ts";
import { f32x4, i32x4, sequence, v128 } from "../wasm/instruction.ts";
import type { FunctionScope } from "../wasm/module-builder.ts";

/** The value below which the result is 0, because eˣ would be close to the smallest normal float. */
const LOWEST = -87;
const HIGHEST = 88;
const LOG2_E = 1.442_695_040_888_963_4;
/** ln 2 in two parts, so that integer multiples of the first are exact. */
const LN2_HIGH = 0.693_359_375;
const LN2_LOW = -2.121_944_4e-4;
/** Factors of x⁷ down to x². */
const COEFFICIENTS = [
  1.987_569_15e-4, 1.398_199_950_7e-3, 8.333_451_907_3e-3, 4.166_579_589_4e-2, 1.666_666_545_9e-1,
  5.000_000_120_1e-1,
] as const;
/** A constant that rounds: added to a float of moderate size, it leaves the nearest integer in the low bits. */
const ROUNDER = 1.5 * 2 ** 23;
const FRACTION_BITS = 23;
/** The bits of the float 1, which has the exponent 0. */
const ONE_BITS = 127 << FRACTION_BITS;

/** The code for eˣ of four floats in a loop. */
interface Exponential {
  /** Code to run before the loop. */
  readonly setUp: Code;
  readonly of: (value: Code) => Code;
}

/**
 * Returns code for eˣ of four floats, within 2 units in the last place for -87 to 88, and 0 below.
 *
 * Above 88 the result is e⁸⁸ if `isPositive` is set, and undefined otherwise. The code uses IEEE
 * operations in a fixed order, so all machines compute the same bits.
 *
 * **Source:** Cephes mathematical library, single/expf.c (range reduction and polynomial; its terms
 * are added in another order).
 */
export function exponential(
  scope: FunctionScope,
  { isPositive }: { isPositive: boolean },
): Exponential {
  const setUp: Code[] = [];
  /** Stores a constant in a variable, because V8 would build its four lanes in each iteration. */
  const keep = (value: Code): Code => {
    const local = scope.local("v128");
    setUp.push(local.set(value));
    return local.get;
  };
  const constant = (value: number): Code => keep(f32x4.constant(value));
  const [input, x, rounded, power] = scope.locals("v128", "v128", "v128", "v128");
  const [square, fourth] = scope.locals("v128", "v128");
  const lowest = constant(LOWEST);
  const raised = f32x4.larger(input.get, lowest);
  const clamped = isPositive ? f32x4.smaller(raised, constant(HIGHEST)) : raised;
  const rounder = constant(ROUNDER);
  const reduce = (part: number): Code =>
    x.set(f32x4.subtract(x.get, f32x4.multiply(power.get, constant(part))));
  const [of7, of6, of5, of4, of3, of2] = COEFFICIENTS;
  const pair = (high: number, low: number): Code =>
    f32x4.add(f32x4.multiply(constant(high), x.get), constant(low));
  // Terms are added in pairs, so that few operations wait for each other.
  const low = f32x4.add(f32x4.multiply(pair(of5, of4), square.get), pair(of3, of2));
  const polynomial = f32x4.add(f32x4.multiply(pair(of7, of6), fourth.get), low);
  const mantissa = f32x4.add(f32x4.multiply(polynomial, square.get), f32x4.add(x.get, constant(1)));
  const scale = i32x4.add(
    i32x4.shiftLeft(rounded.get, FRACTION_BITS),
    keep(i32x4.constant(ONE_BITS)),
  );
  const steps = [
    x.set(clamped),
    rounded.set(f32x4.add(f32x4.multiply(x.get, constant(LOG2_E)), rounder)),
    power.set(f32x4.subtract(rounded.get, rounder)),
    reduce(LN2_HIGH),
    reduce(LN2_LOW),
    square.set(f32x4.multiply(x.get, x.get)),
    fourth.set(f32x4.multiply(square.get, square.get)),
    v128.and(f32x4.multiply(mantissa, scale), f32x4.atLeast(input.get, lowest)),
  ];
  return {
    setUp: sequence(...setUp),
    of: (value) => sequence(input.set(value), ...steps),
  };
}
