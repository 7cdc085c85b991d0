import { expect, test } from "vitest";
import { samplingBehind, seedBehind } from "./continued-sampling.ts";

test("a turn of which nothing was sampled is sampled as it was asked for", () => {
  const sampling = { temperature: 1, seed: 5 };
  expect(samplingBehind(sampling, 0)).toBe(sampling);
});

test("a turn that goes on has another seed, and all else as it was", () => {
  expect(samplingBehind({ temperature: 0.5, seed: 5 }, 1)).toEqual({
    ...{ temperature: 0.5, seed: 1_327_217_890 },
  });
  const unseeded = { temperature: 0.5 };
  expect(samplingBehind(unseeded, 8)).toBe(unseeded);
});

test("the seed follows from how many ids there are, however often it was interrupted", () => {
  expect(seedBehind(seedBehind(7, 8), 120)).toBe(seedBehind(7, 128));
});

test("a large seed keeps its digits", () => {
  expect(seedBehind(Number.MAX_SAFE_INTEGER, 3)).toBe((2 ** 31 - 1 + 3 * 1_327_217_885) % 2 ** 31);
});

test("no two lengths of one turn share a seed", () => {
  const seeds = Array.from({ length: 32_768 }, (_, count) => seedBehind(3, count));
  expect(new Set(seeds).size).toBe(seeds.length);
  expect(seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0)).toBe(true);
});
