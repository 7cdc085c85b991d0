import { describe, expect, test } from "vitest";
import { type PlainJson, type PyDict, toPyValue } from "../../python-values/src/index.ts";
import { toolFromOpenAi } from "./tool-definition.ts";
import { findToolCallParser } from "./registry.ts";
import { findSchemaMismatches } from "./schema-mismatch.ts";

const dict = (value: PlainJson) => toPyValue(value) as PyDict;

describe("findSchemaMismatches() with `uniqueItems`", () => {
  const schema = dict({ properties: { ids: { type: "array", uniqueItems: true } } });
  const find = (ids: PlainJson) => findSchemaMismatches(schema, dict({ ids })).mismatches;

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
  ])("finds the duplicate in %j", (ids) => {
    expect(find(ids)).toEqual(["/ids: must NOT have duplicate items"]);
  });

  test("does not compare every pair of objects", () => {
    // Comparing every pair of 100,000 objects takes a quarter of an hour, which exceeds every time
    // limit.
    const many = Array.from({ length: 100_000 }, (_, index) => ({ [`k${index}`]: index }));
    expect(find(many)).toEqual([]);
    expect(find([...many, { k7: 7 }])).toEqual(["/ids: must NOT have duplicate items"]);
  });

  test("`uniqueItems: false` allows everything", () => {
    const free = dict({ properties: { ids: { type: "array", uniqueItems: false } } });
    expect(findSchemaMismatches(free, dict({ ids: [1, 1] }))).toEqual({ mismatches: [] });
  });
});

describe("a call of a tool with a client's schema", () => {
  const parse = (parameters: PlainJson, given: string) => {
    const openai = { type: "function", function: { name: "f", parameters } };
    const tools = [toolFromOpenAi(toPyValue(openai), "f")];
    const text = `<tool_call>\n{"name": "f", "arguments": ${given}}\n</tool_call>`;
    const { attempts } = findToolCallParser("qwen25").parse(text, { tools });
    return attempts.map(({ status, diagnostics }) => ({ status, diagnostics }));
  };

  test("is noted as unchecked if the schema takes too many steps", () => {
    expect(parse({ type: "object", allOf: [{ $ref: "#" }] }, "{}")).toEqual([
      {
        status: "ok",
        diagnostics: [
          {
            status: "schema-unchecked",
            detail:
              "the arguments were not checked against the tool's schema: it leads through more than 500 schemas",
          },
        ],
      },
    ]);
  });

  test("is checked by a pattern that would backtrack for years", () => {
    const schema = { properties: { a: { pattern: "^(a+)+$" } } };
    const [attempt] = parse(schema, JSON.stringify({ a: `${"a".repeat(3_000)}!` }));
    expect(attempt?.diagnostics).toEqual([
      { status: "schema-mismatch", detail: '/a: must match pattern "^(a+)+$"' },
    ]);
  });

  test("does not need members that JavaScript's objects inherit", () => {
    const properties = { season: { type: "integer" }, constructor: { type: "string" } };
    expect(parse({ properties, required: ["season"] }, '{"season": 2026}')).toEqual([
      { status: "ok", diagnostics: [] },
    ]);
  });
});
