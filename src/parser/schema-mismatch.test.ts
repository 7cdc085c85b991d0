import { describe, expect, test } from "vitest";
import { toPyValue, type PlainJson, type PyDict } from "../python/value.ts";
import { findSchemaMismatches } from "./schema-mismatch.ts";

const dict = (value: PlainJson) => toPyValue(value) as PyDict;

describe("findSchemaMismatches() with `uniqueItems`", () => {
  const schema = dict({ properties: { ids: { type: "array", uniqueItems: true } } });
  const find = (ids: PlainJson) => findSchemaMismatches(schema, dict({ ids }));

  test.each<[PlainJson]>([
    [[1, "1", [1], ["1"], true, "true", null, "null", { a: 1 }, { a: "1" }]],
    [[[1, 2], [[1], 2], [12], { a: 1, b: 2 }, { a: 1 }, { "a:1,b": 2 }]],
    [[Number.POSITIVE_INFINITY, Number.NaN, -1]],
    [[]],
  ])("finds nothing in %j", (ids) => {
    expect(find(ids)).toEqual([]);
  });

  test.each<[PlainJson]>([
    [["a", "b", "a"]],
    [[{ a: 1, b: [2] }, 7, { b: [2], a: 1 }]],
    [[0, -0]],
    [[1, 1.5, [null], [null]]],
  ])("finds what is twice in %j", (ids) => {
    expect(find(ids)).toEqual(["/ids: must NOT have duplicate items"]);
  });

  test("compares no object with every other", () => {
    // Pair by pair, 100,000 objects take a quarter of an hour, which no time limit of ours hides.
    const many = Array.from({ length: 100_000 }, (_, index) => ({ [`k${index}`]: index }));
    expect(find(many)).toEqual([]);
    expect(find([...many, { k7: 7 }])).toEqual(["/ids: must NOT have duplicate items"]);
  });

  test("`uniqueItems: false` allows everything", () => {
    const free = dict({ properties: { ids: { type: "array", uniqueItems: false } } });
    expect(findSchemaMismatches(free, dict({ ids: [1, 1] }))).toEqual([]);
  });
});
