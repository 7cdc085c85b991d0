import { expect, test } from "vitest";
import { checkNumber, count, price } from "./setting.ts";

test.each([
  [
    9_007_199_254_740_992,
    count(0),
    "expected a whole number of at least 0 and at most 9007199254740991",
  ],
  [Infinity, count(1), "expected a whole number of at least 1 and at most 9007199254740991"],
  [Infinity, price, "expected a number of at least 0"],
  [1.5, count(0), "expected a whole number of at least 0"],
  [9_007_199_254_740_991, count(0), undefined],
  [1e300, price, undefined],
])("%d as a setting", (value, kind, problem) => {
  expect(checkNumber(value, kind)).toBe(problem);
});
