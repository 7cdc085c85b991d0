import { expect, test } from "vitest";
import type { ColumnPart } from "../../columns/column-part.ts";
import { formatParts, isDenseLayer, partAt, sideColumnsOf, spellPieces } from "./side-columns.ts";

function part(from: number, rows: number): ColumnPart {
  return { from, rows, policyVersion: "", size: rows * 4, hash: String(from) };
}

test("sums the parts of each column, in a fixed order", () => {
  expect(sideColumnsOf({ topLogprobs: [part(5, 2), part(9, 3)], routedExperts: [] })).toEqual([
    { name: "routedExperts", partCount: 0, rowCount: 0, byteCount: 0 },
    { name: "topLogprobs", partCount: 2, rowCount: 5, byteCount: 20 },
  ]);
  expect(sideColumnsOf({})).toEqual([]);
});

test("finds the part that has a token's row", () => {
  const parts = [part(5, 2), part(9, 3)];
  const found = Array.from({ length: 14 }, (_, token) => partAt(parts, token)?.hash ?? "-");
  expect(found.join("")).toBe("-----55--999--");
  expect(partAt(undefined, 5)).toBeUndefined();
  expect(partAt(parts, 5.5)).toBeUndefined();
});

test("takes a layer of several zeros for a dense one", () => {
  expect(isDenseLayer([0, 0])).toBe(true);
  expect(isDenseLayer([0, 1])).toBe(false);
  expect(isDenseLayer([0])).toBe(false);
});

test("spells ids that the row does not have", () => {
  const texts = spellPieces([
    [4, " a\n", "text"],
    [5, "<|im_end|>", "special"],
    [6, "f09f", "bytes"],
    [7, "", "text"],
  ]);
  expect([...texts]).toEqual([
    [4, " a↵"],
    [5, "<|im_end|>"],
    [6, "0xf09f"],
    [7, "∅"],
  ]);
  expect(spellPieces(undefined).size).toBe(0);
});

test("formats numbers of parts", () => {
  expect([1, 12, 1200].map(formatParts)).toEqual(["1 part", "12 parts", "1,200 parts"]);
});
