import { describe, expect, test } from "vitest";
import { describeInterval } from "./describe-interval.ts";
import { boundsOf, estimateDifference, estimateMean } from "./interval.ts";

/** Tasks with the given numbers of ones and zeros. */
function shares(ones: number, zeros: number): readonly number[] {
  return [...Array<number>(ones).fill(1), ...Array<number>(zeros).fill(0)];
}

/** The probability of a number of hits. */
function binomial(count: number, hits: number, p: number): number {
  let chance = (1 - p) ** (count - hits) * p ** hits;
  for (let index = 1; index <= hits; index++) chance *= (count - hits + index) / index;
  return chance;
}

describe("estimateMean()", () => {
  // Clopper and Pearson's table; 0 and all follow from 0.025 ** (1 / n).
  test.each([
    [8, 2, 0.44390453769, 0.97478927367],
    [1, 9, 0.00252857854, 0.44501611703],
    [0, 20, 0, 1 - 0.025 ** (1 / 20)],
    [20, 0, 0.025 ** (1 / 20), 1],
    [1, 0, 0.025, 1],
  ])("gives Clopper and Pearson's interval for %i successes and %i failures", (a, b, low, high) => {
    const estimate = estimateMean(shares(a, b));
    expect(estimate).toMatchObject({ value: a / (a + b), method: "clopper-pearson" });
    expect(estimate?.low).toBeCloseTo(low, 10);
    expect(estimate?.high).toBeCloseTo(high, 10);
  });

  test.each([
    [5, 0.5],
    [5, 0.8],
    [8, 0.7],
    [10, 0.9],
    [20, 0.9],
    [32, 0.9],
    [32, 0.95],
    [50, 0.95],
    [115, 0.6],
  ])("holds the truth in 95 % or more of all runs with %i tasks of %d", (count, p) => {
    let coverage = 0;
    for (let hits = 0; hits <= count; hits++) {
      const { low = 1, high = 0 } = estimateMean(shares(hits, count - hits)) ?? {};
      if (low <= p && p <= high) coverage += binomial(count, hits, p);
    }
    expect(coverage).toBeGreaterThanOrEqual(0.95);
  });

  test("gives Korn and Graubard's interval for shares between 0 and 1", () => {
    // Ten tasks of four attempts. The mean is 0.8 and the variance 0.06, so that 0.16 * 10 / 0.06 = 26.667 tasks of
    // 0 or 1 would vary as much; times (t of 39 / t of 9)² = (2.0226909 / 2.2621572)² these are 21.319756. The ends are
    // the beta distribution's quantiles at (17.055805, 5.263951) and (18.055805, 4.263951), by mpmath.
    const values = [1, 1, 1, 0.75, 0.5, 1, 0.25, 0.75, 1, 0.75];
    const estimate = estimateMean(values, { range: [0, 1], attemptCount: 40 });
    expect(estimate).toMatchObject({ value: 0.8, method: "korn-graubard", taskCount: 10 });
    // The tasks that were not drawn leave more open here: 0.8 * 0.025 ** (1 / 10).
    expect(estimate?.low).toBeCloseTo(0.553202313745, 11);
    expect(estimate?.high).toBeCloseTo(0.939515076403, 11);
  });

  test("is never narrower than the uncertainty of the tasks that were not drawn", () => {
    const spread = estimateMean([0.5, 0.5, 0.5, 0.5001]);
    expect(spread?.value).toBeCloseTo(0.500025, 12);
    const others = 1 - 0.025 ** (1 / 4);
    expect(spread?.low).toBeCloseTo(0.500025 * (1 - others), 12);
    expect(spread?.high).toBeCloseTo(0.500025 + others * 0.499975, 12);
    const alike = estimateMean([0.5, 0.5, 0.5, 0.5]);
    expect(alike).toMatchObject({ value: 0.5, method: "all-alike" });
    expect(alike?.low).toBeCloseTo(0.5 * (1 - others), 12);
    expect(alike?.high).toBeCloseTo(0.5 + others * 0.5, 12);
  });

  test("gives the same for the same rewards in another order", () => {
    const values = [(0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3, 0.2];
    expect(new Set(values).size).toBeGreaterThan(1);
    const [rounded, exact] = [estimateMean(values), estimateMean([0.2, 0.2, 0.2])];
    expect(rounded?.method).toBe("all-alike");
    expect(rounded?.low).toBeCloseTo(exact!.low!, 12);
    expect(rounded?.high).toBeCloseTo(exact!.high!, 12);
  });

  test("gives Student's interval for unbounded values", () => {
    const estimate = estimateMean([2, 4, 4, 6], {});
    // The mean is 4, its error sqrt(8 / 3) / 2, and t of 3 is 3.182446.
    expect(estimate).toMatchObject({ value: 4, method: "student-t" });
    expect(estimate?.low).toBeCloseTo(4 - 3.182446305284263 * (Math.sqrt(8 / 3) / 2), 9);
    expect(estimate?.high).toBeCloseTo(4 + 3.182446305284263 * (Math.sqrt(8 / 3) / 2), 9);
  });

  test("has no interval for unbounded values that are all equal", () => {
    expect(estimateMean([2, 2, 2, 2])).toEqual({ value: 2, method: "none", taskCount: 4 });
    expect(estimateMean([2], {})).toEqual({ value: 2, method: "none", taskCount: 1 });
  });

  test("scales values of -1 and 1 as it does those of 0 and 1", () => {
    const values = shares(8, 2).map((value) => 2 * value - 1);
    const estimate = estimateMean(values, boundsOf(values));
    expect(estimate).toMatchObject({ method: "clopper-pearson" });
    expect(estimate?.value).toBeCloseTo(0.6, 12);
    expect(estimate?.low).toBeCloseTo(2 * 0.44390453769 - 1, 10);
    expect(estimate?.high).toBeCloseTo(2 * 0.97478927367 - 1, 10);
  });

  test("has no value without tasks", () => {
    expect(estimateMean([])).toBeUndefined();
  });
});

describe("boundsOf()", () => {
  test.each([
    ["successes and failures", [0, 1, 1], { range: [0, 1], attemptCount: 3 }],
    ["shares", [0, 0.5, 1 + 1e-12], { range: [0, 1] }],
    [
      "two values",
      [...shares(8, 2), 1].map((value) => 2 * value - 1),
      { range: [-1, 1], attemptCount: 11 },
    ],
    ["two values of few attempts", [3, 4, 3, 4, 4, 3, 3, 3, 4], {}],
    ["one value that is no share", [2, 2, 2], {}],
    ["any numbers", [-1, 0, 1], {}],
  ])("knows those of %s", (_, rewards, bounds) => {
    expect(boundsOf(rewards)).toEqual(bounds);
  });
});

describe("estimateDifference()", () => {
  test("claims no certainty for equal values", () => {
    const others = 1 - 0.025 ** (1 / 20);
    expect(estimateDifference(Array<number>(20).fill(0), 1)).toEqual({
      value: 0,
      low: -others,
      high: others,
      method: "all-alike",
      taskCount: 20,
    });
    expect(estimateDifference([0, 0])).toEqual({ value: 0, method: "none", taskCount: 2 });
  });

  test("gives Student's interval if tasks differ", () => {
    const estimate = estimateDifference([1, 0, 0, -1, 1, 0, 1, 0, 0, 0], 1);
    // The mean is 0.2, the squares about it sum to 3.6, and t of 9 is 2.262157.
    const half = 2.2621571627409915 * Math.sqrt(3.6 / 9 / 10);
    expect(estimate).toMatchObject({ value: 0.2, method: "student-t", taskCount: 10 });
    expect(estimate?.low).toBeCloseTo(0.2 - half, 9);
    expect(estimate?.high).toBeCloseTo(0.2 + half, 9);
  });
});

test("describeInterval() names the method", () => {
  expect(describeInterval(estimateMean(shares(8, 2))!)).toBe("0.444 to 0.975, Clopper-Pearson");
  expect(describeInterval(estimateMean([2, 2])!)).toBe("–, all tasks went alike");
  expect(describeInterval(estimateDifference([3, 4])!, String)).toMatch(/, Student's t$/);
});
