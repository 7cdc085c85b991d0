import { describe, expect, test } from "vitest";
import { pythonEquals } from "./equals.ts";
import { pythonTruthy } from "./truthy.ts";
import { pythonTypeName } from "./type-name.ts";
import type { PyValue } from "./value.ts";

describe("pythonEquals()", () => {
  const rows: [PyValue, PyValue, boolean][] = [
    [1n, 1, true],
    [1n, true, true],
    [0, false, true],
    [9007199254740993n, 9007199254740992, false],
    ["1", 1n, false],
    [null, false, false],
    [Number.NaN, Number.NaN, false],
    [[Number.NaN], [Number.NaN], true],
    [[1n, [2]], [true, [2n]], true],
    [[1n], [1n, 2n], false],
    [[], new Map(), false],
  ];
  test.each(rows)("of %s and %s is %s", (left, right, expected) => {
    expect(pythonEquals(left, right)).toBe(expected);
    expect(pythonEquals(right, left)).toBe(expected);
  });

  test("compares dictionaries in any order", () => {
    const left = new Map<string, PyValue>([
      ["a", 1n],
      ["b", null],
    ]);
    const right = new Map<string, PyValue>([
      ["b", null],
      ["a", 1],
    ]);
    expect(pythonEquals(left, right)).toBe(true);
    expect(pythonEquals(left, new Map([["a", 1n]]))).toBe(false);
    expect(pythonEquals(new Map([["a", null]]), new Map([["b", null]]))).toBe(false);
  });
});

describe("pythonTruthy()", () => {
  test("is false for None, zeros and empty values", () => {
    for (const value of [null, false, 0n, 0, -0, "", [], new Map()]) {
      expect(pythonTruthy(value)).toBe(false);
    }
  });

  test("is true for the rest, not-a-number included", () => {
    for (const value of [true, 1n, Number.NaN, "0", [null], new Map([["", null]])]) {
      expect(pythonTruthy(value)).toBe(true);
    }
  });
});

describe("pythonTypeName()", () => {
  test("names Python's types", () => {
    const values: PyValue[] = [null, true, 1n, 1, "", [], new Map()];
    expect(values.map(pythonTypeName)).toEqual([
      "NoneType",
      "bool",
      "int",
      "float",
      "str",
      "list",
      "dict",
    ]);
  });
});
