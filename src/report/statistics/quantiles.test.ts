import { describe, expect, test } from "vitest";
import { betaQuantile, studentQuantile } from "./quantiles.ts";

describe("studentQuantile()", () => {
  // From the printed tables of Student's distribution, for 95 % on both sides; 1 has tan(0.475 π).
  test.each([
    [1, Math.tan(0.475 * Math.PI)],
    [2, 4.302652729911275],
    [4, 2.7764451051977987],
    [9, 2.2621571627409915],
    [30, 2.0422724563012373],
    [114, 1.980992297548],
  ])("is right for %i degrees of freedom", (freedom, value) => {
    expect(studentQuantile(0.975, freedom)).toBeCloseTo(value, 8);
  });

  test("approaches the normal distribution's quantiles", () => {
    expect(studentQuantile(0.975, Infinity)).toBeCloseTo(1.959963984540054, 6);
  });
});

describe("betaQuantile()", () => {
  test.each([
    // The distribution of the largest of b: 1 - (1 - x)^b.
    [0.025, 1, 10, 1 - 0.975 ** (1 / 10)],
    [0.975, 1, 115, 1 - 0.025 ** (1 / 115)],
    [0.025, 20, 1, 0.025 ** (1 / 20)],
    // The arcsine distribution: sin²(π p / 2).
    [0.1, 0.5, 0.5, Math.sin(0.05 * Math.PI) ** 2],
    [0.5, 3, 3, 0.5],
  ])("is right at %d for %d and %d", (p, a, b, value) => {
    expect(betaQuantile(p, a, b)).toBeCloseTo(value, 11);
  });

  test("is an end of the range if a parameter is 0", () => {
    expect([betaQuantile(0.025, 0, 5), betaQuantile(0.975, 5, 0)]).toEqual([0, 1]);
  });
});
