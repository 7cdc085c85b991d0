import { expect, test } from "vitest";
import { rowsText } from "./rows-text.ts";

const rows = [
  ["episodes", "8 of 8: 7 completed, 1 truncated, 0 failed"],
  ["samples", "runs/first/samples.jsonl"],
] as const;

test("rowsText() sets texts beside their names if the width is unknown", () => {
  expect(rowsText(rows, Infinity)).toBe(
    "  episodes  8 of 8: 7 completed, 1 truncated, 0 failed\n  samples   runs/first/samples.jsonl\n",
  );
});

test("rowsText() breaks lines between words at 40 columns", () => {
  const text = rowsText(rows, 40);
  expect(text).toBe(
    "  episodes  8 of 8: 7 completed, 1\n            truncated, 0 failed\n  samples   runs/first/samples.jsonl\n",
  );
  expect(Math.max(...text.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(40);
});

test("rowsText() sets texts below their names if the terminal is too narrow", () => {
  expect(rowsText(rows, 30)).toBe(
    "  episodes\n    8 of 8: 7 completed, 1\n    truncated, 0 failed\n  samples\n    runs/first/samples.jsonl\n",
  );
});
