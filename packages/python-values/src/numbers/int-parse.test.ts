import { describe, expect, test } from "vitest";
import { parsePythonInt } from "./int-parse.ts";

describe("parsePythonInt()", () => {
  test.each([
    ["15", 15n],
    [" -1_000\u001f", -1000n],
    ["+007", 7n],
    ["٣", 3n],
    ["\u{1D7D8}\u{1D7E1}", 9n],
    ["９", 9n],
  ])("of %j is %d", (text, value) => {
    expect(parsePythonInt(text)).toBe(value);
  });

  test.each([
    ["", "''"],
    ["42.0", "'42.0'"],
    ["1__0", "'1__0'"],
    ["_1", "'_1'"],
    ["- 1", "'- 1'"],
    ["²", "'²'"],
    ["it's", '"it\'s"'],
    ["\u{11F51}", "'\\U00011f51'"],
  ])("refuses %j as Python does", (text, repr) => {
    expect(() => parsePythonInt(text)).toThrow(`invalid literal for int() with base 10: ${repr}`);
  });

  test("refuses more than 4,300 digits", () => {
    expect(() => parsePythonInt("1".repeat(4301))).toThrow("value has 4301 digits");
  });
});
