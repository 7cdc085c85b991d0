import fc from "fast-check";
import { expect, test } from "vitest";
import { bestIds } from "./best-ids.ts";

test("are those of the largest values, the lower id of equals first", () => {
  expect(bestIds(Float32Array.of(1, 3, 2, 3, -1), 3)).toEqual([1, 3, 2]);
  expect(bestIds(Float32Array.of(0, 0, 0), 2)).toEqual([0, 1]);
  expect(bestIds(Float32Array.of(-Infinity, -1), 2)).toEqual([1, 0]);
});

test("are the start of the sorted ids", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1, maxLength: 20 }),
      fc.nat(19),
      (values, at) => {
        const count = 1 + (at % values.length);
        const sorted = [...values.keys()].toSorted((a, b) => values[b]! - values[a]!);
        expect(bestIds(Float32Array.from(values), count)).toEqual(sorted.slice(0, count));
      },
    ),
  );
});

test("are different ids even if values are not numbers", () => {
  expect(new Set(bestIds(Float32Array.of(NaN, 1, NaN, 2), 3)).size).toBe(3);
});
