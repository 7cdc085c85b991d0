import { expect, test } from "vitest";
import { pythonLower } from "./lower.ts";

test.each([
  ["ABC", "abc"],
  ["İ", "i\u0307"],
  ["ΑΣ", "ας"],
  ["ΑΣΑ", "ασα"],
  ["\u1C89A", "\u1C89a"],
  ["\u{10D50}A", "\u{10D50}a"],
])("pythonLower(%j) is %j, by Unicode 14.0", (text, lower) => {
  expect(pythonLower(text)).toBe(lower);
});
