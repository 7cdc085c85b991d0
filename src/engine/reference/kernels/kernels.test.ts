import { describe, expect, test } from "vitest";
import { compileModule, createSharedMemory, instantiate } from "../wasm/web-assembly.ts";
import type { ExpertKernels } from "./build-kernels.ts";
import { buildKernels } from "./build-kernels.ts";

const shape = {
  hiddenSize: 48,
  headSize: 16,
  keyValueHeadCount: 2,
  groupSize: 3,
  feedForwardSize: 40,
  expertSize: 24,
  normEpsilon: 1e-6,
};

const memory = createSharedMemory(16);
const floats = new Float32Array(memory.buffer);
const kernels = instantiate(await compileModule(buildKernels(shape)), memory) as ExpertKernels;

/** Returns deterministic values between -1 and 1. */
function values(count: number, seed: number): Float32Array {
  return Float32Array.from({ length: count }, (_, index) => Math.sin((index + 1) * (seed + 0.7)));
}

/** Writes floats to an address in bytes. */
function put(address: number, data: ArrayLike<number>): number {
  floats.set(data, address / 4);
  return address;
}

function take(address: number, count: number): number[] {
  return [...floats.subarray(address / 4, address / 4 + count)];
}

describe("multiply()", () => {
  const inner = 12;
  const outputs = 80;
  const weights = values(inner * outputs, 1);
  const bias = values(outputs, 2);

  function multiply(x: Float32Array, rows: number): number[] {
    const out = 131_072;
    kernels.multiply(
      put(1_024, x),
      inner * 4,
      rows,
      inner * 4,
      put(16_384, weights),
      inner * 64,
      outputs / 16,
      out,
      outputs * 4,
      put(65_536, bias),
      0,
    );
    return take(out, rows * outputs);
  }

  test("is the sum of products, in order, and the base", () => {
    const x = values(inner, 3);
    const expected = Array.from({ length: outputs }, (_, output) => {
      let sum = 0;
      for (let k = 0; k < inner; k++) {
        const weight = weights[(Math.floor(output / 16) * inner + k) * 16 + (output % 16)] ?? 0;
        sum = Math.fround(sum + Math.fround((x[k] ?? 0) * weight));
      }
      return Math.fround((bias[output] ?? 0) + sum);
    });
    expect(multiply(x, 1)).toEqual(expected);
  });

  test("gives a row the same bits with any number of rows", () => {
    const x = values(inner * 11, 4);
    const alone = Array.from({ length: 11 }, (_, row) =>
      multiply(x.subarray(row * inner, (row + 1) * inner), 1),
    ).flat();
    for (let rows = 1; rows <= 11; rows++) {
      expect(multiply(x, rows)).toEqual(alone.slice(0, rows * outputs));
    }
  });

  test("may add to its own output", () => {
    const x = values(inner, 5);
    const out = put(131_072, values(outputs, 6));
    const before = take(out, outputs);
    const plain = multiply(x, 1).map((value, index) => value - (bias[index] ?? 0));
    put(out, before);
    kernels.multiply(
      put(1_024, x),
      inner * 4,
      1,
      inner * 4,
      16_384,
      inner * 64,
      5,
      out,
      320,
      out,
      320,
    );
    for (const [index, value] of take(out, outputs).entries()) {
      expect(value).toBeCloseTo((before[index] ?? 0) + (plain[index] ?? 0), 5);
    }
  });
});

describe("exponentials()", () => {
  test("are within two units in the last place, and their sum is right", () => {
    const x = Float32Array.from({ length: 4_096 }, (_, index) => -86.9 + index * 0.0212);
    const largest = kernels.largest(put(1_024, x), 1_024 + x.byteLength);
    expect(largest).toBe(Math.max(...x));
    const sum = kernels.exponentials(1_024, 1_024 + x.byteLength, largest, 1, 65_536);
    const results = take(65_536, x.length);
    for (const [index, value] of results.entries()) {
      const exact = Math.exp(Math.fround((x[index] ?? 0) - largest));
      expect(Math.abs(value / exact - 1)).toBeLessThan(2.5e-7);
    }
    expect(sum).toBeCloseTo(
      results.reduce((total, value) => total + value, 0),
      12,
    );
  });

  test("are 0 far below the largest value and 1 at it", () => {
    put(1_024, [0, -88, -Infinity, -1e30]);
    expect(kernels.exponentials(1_024, 1_040, 0, 1, 65_536)).toBe(1);
    expect(take(65_536, 4)).toEqual([1, 0, 0, 0]);
  });

  test("divide by the temperature first", () => {
    put(1_024, [0, -1, -2, -4]);
    kernels.exponentials(1_024, 1_040, 0, 2, 65_536);
    const expected = [1, Math.exp(-0.5), Math.exp(-1), Math.exp(-2)];
    for (const [index, value] of take(65_536, 4).entries()) {
      expect(value).toBeCloseTo(expected[index] ?? NaN, 6);
    }
  });
});

describe("normalizeHidden()", () => {
  test("divides by the root mean square and multiplies with the weights", () => {
    const { hiddenSize } = shape;
    const x = values(hiddenSize, 7);
    const weights = values(hiddenSize, 8);
    kernels.normalizeHidden(put(1_024, x), 192, 1, put(4_096, weights), 8_192, 192);
    const square = x.reduce((sum, value) => sum + value * value, 0) / hiddenSize;
    for (const [index, value] of take(8_192, hiddenSize).entries()) {
      const expected = ((x[index] ?? 0) / Math.sqrt(square + 1e-6)) * (weights[index] ?? 0);
      expect(value).toBeCloseTo(expected, 6);
    }
  });
});

describe.each([
  ["gate", shape.feedForwardSize],
  ["gateExpert", shape.expertSize],
] as const)("%s()", (name, width) => {
  test("multiplies the second half of a row with the silu of the first", () => {
    const x = values(4 * width, 9).map((value) => value * 5);
    kernels[name](put(1_024, x), 2, 16_384);
    for (const [index, value] of take(16_384, 2 * width).entries()) {
      const row = Math.floor(index / width) * 2 * width + (index % width);
      const [gate, factor] = [x[row] ?? 0, x[row + width] ?? 0];
      expect(value).toBeCloseTo((gate / (1 + Math.exp(-gate))) * factor, 4);
    }
  });
});

describe("accumulate()", () => {
  test("adds each float times the factor", () => {
    const [x, before] = [values(12, 10), values(16, 11)];
    const out = put(16_384, before);
    kernels.accumulate(put(1_024, x), 1_024 + 48, 0.75, out);
    const expected = [...before].map((value, index) =>
      Math.fround(value + (index < 12 ? Math.fround(x[index]! * 0.75) : 0)),
    );
    expect(take(out, 16)).toEqual(expected);
  });
});
