import { describe, expect, test } from "vitest";
import { UsageError } from "../../src/errors.ts";
import { MAX_JSON_DEPTH } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { readRecords } from "./read-records.ts";

function read(text: string) {
  return readRecords(Buffer.from(text), "orders.json");
}

/** An object with one list that nests so deep (counting both). */
function nested(depth: number): string {
  return `{"a": {"b": ${"[".repeat(depth - 2)}${"]".repeat(depth - 2)}}}`;
}

const text =
  '{"10": {"n": 1, "f": 1.0}, "2": {"s": "\\u00e9}", "big": 12345678901234567890}, "é": {}, "2": {"last": true}}';

describe("readRecords()", () => {
  const expected = [
    [
      "10",
      [
        ["n", 1n],
        ["f", 1],
      ],
    ],
    ["2", [["last", true]]],
    ["é", []],
  ];

  test("gives the records in the file's order, the last of equal ids in the first one's place", () => {
    const records = read(text);
    const plain = (pairs: Iterable<[string, PyDict]>) =>
      [...pairs].map(([id, record]) => [id, [...record]]);
    expect(records.size).toBe(3);
    expect([...records.keys()]).toEqual(["10", "2", "é"]);
    expect(plain(records.entries())).toEqual(expected);
    expect(plain(records)).toEqual(expected);
    expect([...records.values()].map((record) => [...record])).toEqual(expected.map((e) => e[1]));
    const seen: unknown[] = [];
    records.forEach((record, id, all) => seen.push([id, [...record], all === records]));
    expect(seen).toEqual(expected.map(([id, record]) => [id, record, true]));
  });

  test("returns the same frozen record each time, and `undefined` for an unknown id", () => {
    const records = read(text);
    expect(records.get("10")).toBe(records.get("10"));
    expect(() => (records.get("10") as Map<string, PyValue>).set("n", 2n)).toThrow("it is frozen");
    expect(records.has("é")).toBe(true);
    expect(records.has("e")).toBe(false);
    expect(records.get("e")).toBeUndefined();
  });

  test("reads JSON that Python accepts and JavaScript does not: NaN, and ids with escapes", () => {
    expect(read('{"a\\u0062": {"n": NaN}}').get("ab")?.get("n")).toBeNaN();
  });

  test.each([
    ["[]", "expected an object"],
    ['{"a": 5}', '"a" is not an object'],
    ['{"a": {"b": 1}, "c": [}', "Expecting value: line 1 column 23 (char 22)"],
    ['{"a": {"b": 01}}', "Expecting ',' delimiter"],
    ['{"a": {}} x', "Extra data"],
    ["\uFEFF{}", "Unexpected UTF-8 BOM"],
    [`{"a": {"n": ${"1".repeat(4301)}}}`, "Exceeds the limit (4300 digits)"],
    [nested(MAX_JSON_DEPTH + 1), "maximum recursion depth exceeded"],
  ])("refuses %j at once", (broken, problem) => {
    expect(() => read(broken)).toThrow(UsageError);
    expect(() => read(broken)).toThrow(problem);
  });

  test("refuses a long integer at any place, and reads the longest that Python accepts", () => {
    for (const before of [0, 1, 4290, 4291, 4292, 8590]) {
      const digits = (count: number) =>
        `{"a": {"s": "${"x".repeat(before)}", "n": ${"1".repeat(count)}}}`;
      expect(() => read(digits(4301))).toThrow("Exceeds the limit (4300 digits)");
      expect(read(digits(4300)).get("a")?.get("n")).toBe(BigInt("1".repeat(4300)));
    }
  });

  test("reads the deepest nesting that Python accepts", () => {
    expect(read(nested(MAX_JSON_DEPTH)).get("a")?.has("b")).toBe(true);
  });
});
