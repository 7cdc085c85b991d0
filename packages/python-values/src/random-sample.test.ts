import { describe, expect, test } from "vitest";
import { pythonRandomSample } from "./random-sample.ts";

function places(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}

describe("pythonRandomSample()", () => {
  // Recorded from CPython 3.11: random.Random(seed).sample(range(length), count).
  test.each([
    [0, 5, 5, [3, 4, 0, 1, 2]],
    [3, 5, 5, [1, 4, 3, 2, 0]],
    [1, 19, 5, [4, 2, 8, 3, 7]],
    [2 ** 32 + 5, 19, 5, [5, 15, 9, 0, 18]],
    [2 ** 53 - 1, 69, 5, [12, 28, 24, 18, 14]],
    [12345, 69, 5, [53, 1, 38, 47, 24]],
    [1, 100, 10, [17, 72, 97, 8, 32, 15, 63, 57, 60, 83]],
  ])("draws as Python does: seed %i, %i items, %i of them", (seed, length, count, drawn) => {
    expect(pythonRandomSample(places(length), count, seed)).toEqual(drawn);
  });

  test("does not heed the seed's sign", () => {
    expect(pythonRandomSample(places(5), 5, -3)).toEqual([1, 4, 3, 2, 0]);
  });

  test("draws each item once, all of them if asked", () => {
    const drawn = pythonRandomSample(places(700), 700, 7);
    expect(drawn.toSorted((left, right) => left - right)).toEqual(places(700));
  });

  test("refuses to draw more items than the list has", () => {
    expect(() => pythonRandomSample([1, 2], 3, 0)).toThrow(
      "Sample larger than population or is negative",
    );
  });
});
