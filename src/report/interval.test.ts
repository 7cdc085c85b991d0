import { describe, expect, test } from "vitest";
import { estimateDifference, estimateMean } from "./interval.ts";

describe("estimateMean()", () => {
  test("always gives the same interval for the same values", () => {
    const values = Array.from({ length: 115 }, (_, index) => (index % 3 === 0 ? 1 : 0));
    const estimate = estimateMean(values);
    expect(estimate).toEqual(estimateMean(values));
    // The normal approximation gives 0.2524 to 0.4258.
    expect(estimate?.value).toBeCloseTo(39 / 115, 12);
    expect(estimate?.low).toBeCloseTo(0.2524, 2);
    expect(estimate?.high).toBeCloseTo(0.4258, 2);
  });

  test("claims no certainty where all tasks went alike", () => {
    // Wilson's interval for 0 of 20 and 20 of 20.
    expect(estimateMean(Array(20).fill(0))).toMatchObject({ value: 0, low: 0 });
    expect(estimateMean(Array(20).fill(0))?.high).toBeCloseTo(0.1611, 4);
    expect(estimateMean(Array(20).fill(1))?.low).toBeCloseTo(0.8389, 4);
    expect(estimateMean([1])?.low).toBeCloseTo(0.2065, 4);
  });

  test("has no value without tasks", () => {
    expect(estimateMean([])).toBeUndefined();
  });
});

describe("estimateDifference()", () => {
  test("claims no certainty where nothing differs", () => {
    const estimate = estimateDifference(Array(20).fill(0));
    expect(estimate).toMatchObject({ value: 0, taskCount: 20 });
    expect(estimate?.low).toBeCloseTo(-0.1611, 4);
    expect(estimate?.high).toBeCloseTo(0.1611, 4);
  });

  test("draws tasks where they differ", () => {
    const estimate = estimateDifference([1, 0, 0, -1, 1, 0, 1, 0, 0, 0]);
    expect(estimate?.value).toBeCloseTo(0.2, 12);
    expect(estimate?.low).toBeLessThan(0);
    expect(estimate?.high).toBeGreaterThan(0.4);
  });
});
