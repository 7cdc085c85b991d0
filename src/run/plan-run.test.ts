import { describe, expect, test } from "vitest";
import { parseTaskIndexes } from "./plan-run.ts";

describe("parseTaskIndexes()", () => {
  const scope = { split: "test", size: 115 };

  test.each([
    ["0-3", [0, 1, 2, 3]],
    ["7", [7]],
    ["5,0-2, 5", [5, 0, 1, 2]],
    ["114", [114]],
  ])("reads %s", (text, indexes) => {
    expect(parseTaskIndexes(text, scope)).toEqual(indexes);
  });

  test("reads all", () => {
    expect(parseTaskIndexes("all", { split: "dev", size: 3 })).toEqual([0, 1, 2]);
  });

  test.each([
    ["115", 'Cannot play task 115: split "test" has 115 tasks, expected 0 to 114'],
    ["100-200", "Cannot play task 200"],
    ["4-2", "the range 4-2 does not rise"],
    ["1;2", '"1;2" is neither a number nor a range'],
    ["", '"" is neither a number nor a range'],
    ["-1", '"-1" is neither a number nor a range'],
  ])("refuses %s", (text, message) => {
    expect(() => parseTaskIndexes(text, scope)).toThrow(message);
  });
});
