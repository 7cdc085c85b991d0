import { expect, test } from "vitest";
import { samplingOfTurn } from "./turn-seed.ts";

function seedOf(ofRun: number, seed: number, turnIndex: number): number | undefined {
  return samplingOfTurn({ seed: ofRun }, { seed, turnIndex }).seed;
}

test("a turn's seed follows from the run's seed, the episode's seed and its index", () => {
  expect(samplingOfTurn({ temperature: 0.5, seed: 7 }, { seed: 2, turnIndex: 3 })).toEqual({
    temperature: 0.5,
    seed: 2_028,
  });
  expect(seedOf(-1, 0, 0)).toBe(-1);
  expect(seedOf(5, 2_128_328, 0)).toBe(2_147_482_957);
  expect(seedOf(5, 2_128_329, 1)).toBe(319);
  expect(seedOf(2 ** 31 + 4, 1_700_000_000_000, 2)).toBe(
    (2 ** 31 + 4 + 1_700_000_000_000 * 1009 + 2) % 2 ** 31,
  );
});

test("without a seed for the run, a turn has none", () => {
  const sampling = { temperature: 0.5 };
  expect(samplingOfTurn(sampling, { seed: 2, turnIndex: 3 })).toBe(sampling);
});

test.each([2 ** 44, 2 ** 50, Number.MAX_SAFE_INTEGER - 64])(
  "turns of episodes with large seeds differ: from %d on",
  (first) => {
    for (const ofRun of [1, Number.MAX_SAFE_INTEGER]) {
      const seeds = Array.from({ length: 64 }, (_, index) =>
        [0, 1, 2].map((turnIndex) => seedOf(ofRun, first + index, turnIndex)),
      ).flat();
      expect(new Set(seeds).size).toBe(seeds.length);
    }
    const exact = (BigInt(first) * 1009n + 3n) % 2n ** 31n;
    expect(seedOf(1, first, 2)).toBe(Number(exact));
  },
);
