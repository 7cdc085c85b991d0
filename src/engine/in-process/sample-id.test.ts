import { describe, expect, test } from "vitest";
import { seededRandomNumbers } from "./random-numbers.ts";
import type { SamplingFilter } from "./sample-id.ts";
import { mostLikelyId, sampleId, sampleKept } from "./sample-id.ts";

const ALL: SamplingFilter = { topK: -1, topP: 1, minP: 0 };
// Exact in binary.
const weights = Float32Array.of(0.125, 0.5, 0.0625, 0.25, 0.0625);

function sample(random: number, filter: Partial<SamplingFilter> = {}): number {
  return sampleId(weights, { total: 1, filter: { ...ALL, ...filter }, random });
}

/** Counts how often each id is drawn for 64 evenly spread numbers. */
function counts(filter: Partial<SamplingFilter>): number[] {
  const seen = [0, 0, 0, 0, 0];
  for (let index = 0; index < 64; index++) {
    const id = sample(index / 64, filter);
    seen[id] = (seen[id] ?? 0) + 1;
  }
  return seen;
}

describe("sampleId()", () => {
  test("draws each id in proportion to its weight", () => {
    expect(counts({})).toEqual([8, 32, 4, 16, 4]);
  });

  test("keeps the most likely with top-k, the lower id of equals", () => {
    expect(counts({ topK: 1 })).toEqual([0, 64, 0, 0, 0]);
    expect(counts({ topK: 2 })).toEqual([0, 43, 0, 21, 0]);
    expect(counts({ topK: 4 })[2]).toBeGreaterThan(0);
    expect(counts({ topK: 4 })[4]).toBe(0);
    expect(counts({ topK: 99 })).toEqual([8, 32, 4, 16, 4]);
  });

  test("keeps with top-p the fewest ids that reach it", () => {
    expect(counts({ topP: 0.5 })).toEqual([0, 64, 0, 0, 0]);
    expect(counts({ topP: 0.51 })).toEqual([0, 43, 0, 21, 0]);
    expect(counts({ topP: 0.9 })[4]).toBe(0);
    expect(counts({ topP: 1e-9 })).toEqual([0, 64, 0, 0, 0]);
  });

  test("keeps with min-p the ids near the most likely one", () => {
    expect(counts({ minP: 0.5 })).toEqual([0, 43, 0, 21, 0]);
    expect(counts({ minP: 0.125 })).toEqual([8, 32, 4, 16, 4]);
    expect(counts({ minP: 1 })).toEqual([0, 64, 0, 0, 0]);
  });

  test("applies all filters", () => {
    expect(counts({ topK: 3, minP: 0.3 })).toEqual([0, 43, 0, 21, 0]);
  });

  test("draws a possible id if rounding left the sum below the goal", () => {
    const tail = Float32Array.of(0.5, 0.5, 0);
    expect(sampleId(tail, { total: 1.000_000_1, filter: ALL, random: 1 - 2 ** -53 })).toBe(1);
  });
});

describe("sampleKept()", () => {
  test("draws the same id as sampleId(), with the ids that it is drawn from", () => {
    for (const [filter, keptIds, keptTotal] of [
      [{ topK: 2 }, [1, 3], 0.75],
      [{ topK: 4 }, [0, 1, 2, 3], 0.9375],
      [{ topK: 9, topP: 0.51 }, [1, 3], 0.75],
      [{ minP: 0.25 }, [0, 1, 3], 0.875],
      [{}, [0, 1, 2, 3, 4], 1],
    ] as const) {
      for (let index = 0; index < 64; index++) {
        const random = index / 64;
        const drawing = { total: 1, filter: { ...ALL, ...filter }, random };
        const id = sample(random, filter);
        expect(sampleKept(weights, drawing)).toEqual({ id, keptIds, keptTotal });
        expect(keptIds).toContain(id);
      }
    }
  });

  test("keeps no id with the weight 0", () => {
    const drawing = { total: 1, filter: { ...ALL, topK: 3 }, random: 0 };
    expect(sampleKept(Float32Array.of(0, 0.5, 0, 0.5), drawing).keptIds).toEqual([1, 3]);
  });
});

describe("mostLikelyId()", () => {
  test("is the lowest of equals", () => {
    expect(mostLikelyId(Float32Array.of(-3, 1, 0, 1))).toBe(1);
  });
});

describe("seededRandomNumbers()", () => {
  test("depend on seed, session and position", () => {
    const number = seededRandomNumbers(7, "session")(41);
    expect(seededRandomNumbers(7, "session")(41)).toBe(number);
    expect(seededRandomNumbers(8, "session")(41)).not.toBe(number);
    expect(seededRandomNumbers(7, "other")(41)).not.toBe(number);
    expect(seededRandomNumbers(7, "session")(42)).not.toBe(number);
  });

  test("are spread evenly, over positions and over sessions", () => {
    const positions = seededRandomNumbers(1, "a");
    const draws = [
      Array.from({ length: 10_000 }, (_, index) => positions(index)),
      Array.from({ length: 10_000 }, (_, index) => seededRandomNumbers(index, "b")(5)),
    ];
    for (const numbers of draws) {
      const bins = Array.from({ length: 10 }, () => 0);
      for (const number of numbers) {
        const bin = Math.floor(number * 10);
        bins[bin] = (bins[bin] ?? 0) + 1;
      }
      const chiSquare = bins.reduce((sum, count) => sum + (count - 1_000) ** 2 / 1_000, 0);
      // The limit for nine degrees of freedom that one sample in ten thousand exceeds.
      expect(chiSquare).toBeLessThan(33.7);
    }
  });
});
