import { expect, test } from "vitest";
import { formatFloat } from "./float-text.ts";

test.each([
  [1, "1.0"],
  [-0, "-0.0"],
  [0.1, "0.1"],
  [123.25, "123.25"],
  [6.730000000000018, "6.730000000000018"],
  [0.0001, "0.0001"],
  [0.00001, "1e-05"],
  [-1.5e-7, "-1.5e-07"],
  [1e15, "1000000000000000.0"],
  [2 ** 53, "9007199254740992.0"],
  [1e16, "1e+16"],
  [1.2345e22, "1.2345e+22"],
  [5e-324, "5e-324"],
  [1.7976931348623157e308, "1.7976931348623157e+308"],
  [Number.NaN, "nan"],
  [Infinity, "inf"],
  [-Infinity, "-inf"],
])("formatFloat(%d) is %s", (value, text) => {
  expect(formatFloat(value)).toBe(text);
});
