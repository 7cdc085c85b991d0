import { expect, test } from "vitest";
import { rankOf, readMergesPart } from "./merge-table.ts";
import { readVocabularyPart } from "./vocabulary-part.ts";

const vocabulary = { a: 5, b: 6, '"': 7, "\\": 8, é: 9, "#version": 10, "a b": 11 };
const merged = { ab: 20, ba: 21, '"\\': 22, éa: 23, abab: 24, "#versiona": 25, "a ba": 26 };
const { tokenTexts } = readVocabularyPart(
  Buffer.from(JSON.stringify({ ...merged, ...vocabulary })),
  0,
)!;

function read(json: string, start = 0) {
  return readMergesPart(Buffer.from(json), start, tokenTexts!);
}

/** Pairs with their merged tokens, in the order of their ranks. */
function mergesOf(json: string): readonly (readonly number[])[] | undefined {
  const table = read(json)?.table;
  if (table === undefined) return undefined;
  return Array.from({ length: table.ids.length / 3 }, (_, rank) => {
    const [left = -1, right = -1, result = -1] = table.ids.subarray(rank * 3);
    expect(rankOf(table, left, right)).toBe(rank);
    expect(rankOf(table, right, result)).toBe(-1);
    return [left, right, result];
  });
}

const expected = [
  [5, 6, 20],
  [7, 8, 22],
  [9, 5, 23],
  [20, 20, 24],
];

test.each([
  [
    "lists",
    [
      ["a", "b"],
      ['"', "\\"],
      ["é", "a"],
      ["ab", "ab"],
    ],
  ],
  ["texts", ["a b", '" \\', "é a", "ab ab"]],
])("merges are read as %s", (_what, merges) => {
  const json = JSON.stringify(merges);
  expect(mergesOf(json)).toEqual(expected);
  expect(mergesOf(JSON.stringify(merges, null, 2))).toEqual(expected);
  expect(mergesOf(json.replaceAll("é", String.raw`\u00e9`))).toEqual(expected);
  expect(read(`[${json},"more"]`, 1)?.end).toBe(Buffer.byteLength(json) + 1);
});

test("the list may be empty, and a comment may be merged if it is a token text", () => {
  expect(mergesOf("[]")).toEqual([]);
  expect(mergesOf('[["#version","a"]]')).toEqual([[10, 5, 25]]);
  expect(mergesOf('[["a b","a"]]')).toEqual([[11, 5, 26]]);
});

test.each([
  "{}",
  '["ab"]',
  '["a b a"]',
  String.raw`["a\u0020b"]`,
  '["a b a"]',
  '["#version a"]',
  '[["a","b","a"]]',
  '[["a"]]',
  '[["a","b"]',
  '[["a","b"],]',
  '[["a" "b"]]',
  '[["a","b"],"b a"]',
  '["b a",["a","b"]]',
  '[["a","c"]]',
  '[["c","a"]]',
  '[["b","b"]]',
  '[[1,"b"]]',
  '["a b',
])("%s is left to the library", (json) => {
  expect(read(json)).toBeUndefined();
});

test("too many pairs with the same slot are left to the library", () => {
  // The slot of 600 merges has 11 bits.
  const placeOf = (left: number): number => {
    const mixed = Math.imul(left, 0x9e3779b1) ^ Math.imul(0, 0x85ebca6b);
    return (mixed ^ (mixed >>> 15)) & 2047;
  };
  const lefts = Array.from({ length: 2_000_000 }, (_, id) => id + 1).filter(
    (left) => placeOf(left) === 5,
  );
  expect(lefts.length).toBeGreaterThan(600);
  const chosen = lefts.slice(0, 600);
  const vocabularyOf = Object.fromEntries([
    ["b", 0],
    ...chosen.flatMap((left, place) => [
      [`a${place}`, left],
      [`a${place}b`, 3_000_000 + place],
    ]),
  ]) as Record<string, number>;
  const spelled = readVocabularyPart(Buffer.from(JSON.stringify(vocabularyOf)), 0)?.tokenTexts;
  const readAll = (count: number) => {
    const merges = chosen.slice(0, count).map((_left, place) => [`a${place}`, "b"]);
    return readMergesPart(Buffer.from(JSON.stringify(merges)), 0, spelled!);
  };
  expect(readAll(600)).toBeUndefined();
  expect(rankOf(readAll(500)!.table, chosen[499]!, 0)).toBe(499);
});
