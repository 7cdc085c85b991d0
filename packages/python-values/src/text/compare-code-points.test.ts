import { expect, test } from "vitest";
import { compareCodePoints } from "./compare-code-points.ts";

test("compareCodePoints() orders as Python does", () => {
  const ordered = [
    "",
    "A",
    "a",
    "a\ud83d",
    "a\u{1F600}",
    "ab",
    "\ud83d",
    "\udc00",
    "\uFFFD",
    "\u{1F600}",
    "\u{1F600}a",
    "\u{1F601}",
  ];
  expect(ordered.toReversed().sort(compareCodePoints)).toEqual([
    "",
    "A",
    "a",
    "ab",
    "a\ud83d",
    "a\u{1F600}",
    "\ud83d",
    "\udc00",
    "\uFFFD",
    "\u{1F600}",
    "\u{1F600}a",
    "\u{1F601}",
  ]);
  expect(compareCodePoints("a", "a")).toBe(0);
});
