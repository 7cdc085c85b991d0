import { describe, expect, test } from "vitest";
import { calculateNumbers, type NumberOperator, raiseNumber } from "./calculate-numbers.ts";

type Num = bigint | number;

describe("calculateNumbers()", () => {
  // As CPython 3.11 computes them.
  test.each<[Num, NumberOperator, Num, Num]>([
    [-7n, "%", 3n, 2n],
    [7n, "%", -3n, -2n],
    [-6n, "%", 3n, 0n],
    [-7.5, "%", 2n, 0.5],
    [7.5, "%", -2n, -0.5],
    [0, "%", -3n, -0],
    [-6, "%", -3n, -0],
    [-6n, "%", 3, 0],
    [5n, "%", Infinity, 5],
    [-5n, "%", Infinity, Infinity],
    [7n, "//", -2n, -4n],
    [-6n, "//", 2n, -3n],
    [7, "//", -2n, -4],
    [-0, "//", 1n, -0],
    [-5, "//", Infinity, -1],
    [0.1, "//", 0.01, 10],
    [1, "//", 0.1, 9],
    [Infinity, "//", 1n, Number.NaN],
    [0n, "/", -5n, -0],
    [6n, "/", 3n, 2],
    [10n ** 30n + 1n, "/", 3n, 3.333333333333333e29],
    [1e308, "*", 10n, Infinity],
    [1n, "+", 0.5, 1.5],
    [1n, "-", 2n, -1n],
  ])("%s %s %s is %s", (left, operator, right, result) => {
    expect(calculateNumbers(left, operator, right)).toBe(result);
  });

  test.each<[Num, NumberOperator, Num, string, string]>([
    [5n, "/", 0n, "ZeroDivisionError", "division by zero"],
    [5, "/", 0n, "ZeroDivisionError", "float division by zero"],
    [5n, "//", 0n, "ZeroDivisionError", "integer division or modulo by zero"],
    [5n, "//", 0, "ZeroDivisionError", "float floor division by zero"],
    [5n, "%", 0n, "ZeroDivisionError", "integer modulo by zero"],
    [5, "%", 0n, "ZeroDivisionError", "float modulo"],
    [10n ** 400n, "+", 0.5, "OverflowError", "int too large to convert to float"],
    [10n ** 400n, "/", 3n, "OverflowError", "integer division result too large for a float"],
  ])("%s %s %s fails as Python does", (left, operator, right, exception, message) => {
    expect(() => calculateNumbers(left, operator, right)).toThrow(
      expect.objectContaining({ exception, message }),
    );
  });

  test("refuses integers that grow out of bounds", () => {
    const large = 1n << 65_000n;
    expect(() => calculateNumbers(large, "*", large)).toThrow("int too large");
  });
});

describe("raiseNumber()", () => {
  test.each<[Num, Num, Num]>([
    [2n, 10n, 1024n],
    [-2n, -3n, -0.125],
    [10n, -2n, 0.01],
    [2n, 0.5, Math.SQRT2],
    [1.1, 10n, 2.5937424601000023],
    [0, 0n, 1],
    [-1, Infinity, 1],
    [1n, 10n ** 9n, 1n],
  ])("%s ** %s is %s", (base, exponent, result) => {
    expect(raiseNumber(base, exponent)).toBe(result);
  });

  test("returns `undefined` if Python's result is complex", () => {
    expect(raiseNumber(-8n, 1 / 3)).toBeUndefined();
  });

  test("fails as Python does, and before it computes for minutes", () => {
    expect(() => raiseNumber(0n, -1n)).toThrow("0.0 cannot be raised to a negative power");
    expect(() => raiseNumber(2, 1024n)).toThrow("(34, 'Numerical result out of range')");
    expect(() => raiseNumber(9n, 9n ** 9n)).toThrow("int too large");
  });
});
