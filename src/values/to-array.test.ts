import { expect, test } from "vitest";
import { toArray } from "./to-array.ts";

test.each([
  [Int32Array.of(3, -1, 2 ** 31 - 1), [3, -1, 2 ** 31 - 1]],
  [Float64Array.of(0.5, Number.NaN), [0.5, Number.NaN]],
  [
    [7, 8],
    [7, 8],
  ],
  [new Int32Array(), []],
])("%o is copied to an array", (numbers, copied) => {
  expect(toArray(numbers)).toEqual(copied);
  expect(toArray(numbers)).not.toBe(numbers);
});
