import { describe, expect, test } from "vitest";
import { roundHalfEven } from "./round.ts";

describe("roundHalfEven()", () => {
  test.each([
    [0.125, 2, 0.12],
    [0.375, 2, 0.38],
    [2.675, 2, 2.67],
    [1.005, 2, 1],
    [-0.001, 2, -0],
    [-1e-14, 2, -0],
    [2.5, 0, 2],
    [1234.5678, -2, 1200],
    [1e22, 2, 1e22],
    [5e-324, 323, 0],
    [1.5, 400, 1.5],
    [-1.5, -400, -0],
    [Infinity, 2, Infinity],
  ])("rounds %d to %i digits as Python does", (value, digits, expected) => {
    expect(roundHalfEven(value, digits)).toBe(expected);
  });

  test("keeps integers integers", () => {
    expect(roundHalfEven(25n, 2)).toBe(25n);
    expect(roundHalfEven(25n, -1)).toBe(20n);
    expect(roundHalfEven(-35n, -1)).toBe(-40n);
  });

  test("refuses a result out of range", () => {
    expect(() => roundHalfEven(1.7976931348623157e308, -308)).toThrow(
      "rounded value too large to represent",
    );
  });
});
