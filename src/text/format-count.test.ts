import { expect, test } from "vitest";
import { formatCount } from "./format-count.ts";

test.each([
  [0, "0"],
  [999, "999"],
  [1000, "1,000"],
  [12_345.6, "12,346"],
  [-1_234_567, "-1,234,567"],
])("formats %d as %s", (count, text) => {
  expect(formatCount(count)).toBe(text);
});
