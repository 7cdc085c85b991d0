import { expect, test } from "vitest";
import { backOffMs } from "./back-off.ts";

test("a wait doubles with each failure up to the longest", () => {
  const waits = [1, 2, 3, 4, 5, 6].map((failureCount) =>
    backOffMs(failureCount, { firstMs: 100, mostMs: 1_000 }),
  );
  expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(backOffMs(11, { firstMs: 1 })).toBe(1_024);
});

test("a wait is spread over its upper half", () => {
  const wait = (random: number): number =>
    backOffMs(2, { firstMs: 100, mostMs: 1_000, random: () => random });
  expect([wait(0), wait(0.5), wait(1)]).toEqual([100, 150, 200]);
});

test("a wait of 0 stays 0, after any number of failures", () => {
  expect(backOffMs(5_000, { firstMs: 0, mostMs: 1_000 })).toBe(0);
  expect(backOffMs(5_000, { firstMs: 1, mostMs: 1_000 })).toBe(1_000);
});
