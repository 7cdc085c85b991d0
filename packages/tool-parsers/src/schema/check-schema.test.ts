import { describe, expect, test } from "vitest";
import {
  parsePythonJson,
  type PlainJson,
  type PyDict,
  type PyValue,
  toPyValue,
} from "../../../python-values/src/index.ts";
import { checkSchema } from "./check-schema.ts";

const dict = (value: PlainJson) => toPyValue(value) as PyDict;

function check(schema: PlainJson, value: PlainJson): readonly string[] {
  const { mismatches, unchecked } = checkSchema(dict(schema), toPyValue(value));
  expect(unchecked).toBeUndefined();
  return mismatches.map(({ path, message }) => `/${path.join("/")}: ${message}`);
}

/** Checks a value that stands as the member `a` of an object. */
const checkMember = (schema: PlainJson, value: PlainJson) =>
  check({ type: "object", properties: { a: schema } }, { a: value });

const draft = (name: string) => ({ $schema: `http://json-schema.org/draft-0${name}/schema#` });
const year = (name: string) => ({ $schema: `https://json-schema.org/draft/${name}/schema` });

describe("checkSchema() lists mismatches", () => {
  test.each<[PlainJson, PlainJson, string]>([
    [{ type: "string" }, 1, "must be string"],
    [{ type: ["string", "null"] }, 1, "must be string,null"],
    [{ type: "integer" }, 1.5, "must be integer"],
    [{ type: "number" }, Number.NaN, "must be number"],
    [{ enum: ["x", 2] }, "y", "must be equal to one of the allowed values"],
    [{ const: null }, 0, "must be equal to constant"],
    [{ minimum: 2 }, 1, "must be >= 2"],
    [{ exclusiveMaximum: 2 }, 2, "must be < 2"],
    [{ minLength: 2 }, "😀", "must NOT have fewer than 2 characters"],
    [{ pattern: "^a" }, "b", 'must match pattern "^a"'],
    [{ maxItems: 1 }, [1, 2], "must NOT have more than 1 items"],
    [{ minProperties: 1 }, {}, "must NOT have fewer than 1 properties"],
    [{ contains: { type: "string" } }, [1], "must contain at least 1 valid item(s)"],
    [{ not: { type: "string" } }, "x", "must NOT be valid"],
    [{ oneOf: [{ type: "integer" }, { minimum: 2 }] }, 3, "must match exactly one schema in oneOf"],
    [{ additionalProperties: false }, { b: 1 }, "must NOT have additional properties"],
    [{ propertyNames: { maxLength: 1 } }, { bb: 1 }, 'property name "bb" must be valid'],
    [
      { dependentRequired: { b: ["c"] } },
      { b: 1 },
      "must have property c when property b is present",
    ],
    [
      { properties: { b: {} }, unevaluatedProperties: false },
      { b: 1, c: 2 },
      "must NOT have unevaluated properties",
    ],
    [{ prefixItems: [{}], unevaluatedItems: false }, [1, 2], "must NOT have unevaluated items"],
  ])("%o, %o", (schema, value, message) => {
    expect(checkMember(schema, value)).toEqual([`/a: ${message}`]);
  });

  test("names the place of each, and all of them", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "array", items: { type: "integer" } }, "b/c": { type: "string" } },
      required: ["a", "d"],
    };
    expect(check(schema, { a: [1, "2"], "b/c": 3 })).toEqual([
      "/: must have required property 'd'",
      "/a/1: must be integer",
      "/b/c: must be string",
    ]);
  });

  test("lists the mismatches of each alternative", () => {
    const schema = { anyOf: [{ type: "string" }, { type: "null" }] };
    expect(checkMember(schema, 1)).toEqual([
      "/a: must be string",
      "/a: must be null",
      "/a: must match a schema in anyOf",
    ]);
    expect(checkMember(schema, null)).toEqual([]);
  });
});

describe("checkSchema() compares numbers by their decimal digits", () => {
  test.each<[PlainJson, PlainJson, boolean]>([
    [{ multipleOf: 0.01 }, 19.99, true],
    [{ multipleOf: 0.01 }, 19.999, false],
    [{ multipleOf: 0.1 }, 0.3, true],
    [{ multipleOf: 0.0001 }, 0.0075, true],
    [{ multipleOf: 1e-7 }, 3e-7, true],
    [{ multipleOf: 1e-7 }, 3.5e-7, false],
    [{ multipleOf: 0.01 }, 1e21, true],
    [{ multipleOf: 1e300 }, 5, false],
    [{ multipleOf: 3 }, 9_007_199_254_740_993n, true],
    [{ multipleOf: 3 }, 9_007_199_254_740_992n, false],
    [{ maximum: 9_007_199_254_740_992n }, 9_007_199_254_740_993n, false],
    [{ minimum: -Infinity, maximum: Infinity }, 9_007_199_254_740_993n, true],
    [{ minimum: Infinity }, 5, false],
    [{ exclusiveMaximum: -Infinity }, 5, false],
    [{ enum: [1] }, 1.0, true],
    [{ type: "integer" }, 1e25, true],
  ])("%o, %o: %s", (schema, value, fits) => {
    expect(checkMember(schema, value)).toHaveLength(fits ? 0 : 1);
  });

  test("a float without a fraction is an integer", () => {
    const given = parsePythonJson('{"a": 2.0}') as PyDict;
    const schema = dict({ properties: { a: { type: "integer", const: 2 } } });
    expect(checkSchema(schema, given)).toEqual({ mismatches: [] });
  });
});

describe("checkSchema() knows no names but those that are written", () => {
  const names = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"];
  const own = (entries: readonly (readonly [string, PlainJson])[]) =>
    new Map(entries.map(([name, value]) => [name, toPyValue(value)]));

  test.each(names)("%s", (name) => {
    const schema = new Map<string, PyValue>([
      ["properties", own([[name, { type: "string" }]])],
      ["additionalProperties", false],
    ]);
    expect(checkSchema(schema, new Map()).mismatches).toEqual([]);
    expect(checkSchema(schema, own([[name, "x"]])).mismatches).toEqual([]);
    expect(checkSchema(schema, own([[name, 1]])).mismatches).toEqual([
      { path: [name], message: "must be string" },
    ]);
    const needed = dict({ required: [name] });
    expect(checkSchema(needed, new Map()).mismatches).toHaveLength(1);
    expect(checkSchema(needed, own([[name, 1]])).mismatches).toEqual([]);
    const closed = dict({ properties: {}, additionalProperties: false });
    expect(checkSchema(closed, own([[name, 1]])).mismatches).toHaveLength(1);
  });
});

describe("checkSchema() reads a schema by the draft that it names", () => {
  test.each<[string, PlainJson, PlainJson, boolean]>([
    ["draft 4: a flag", { ...draft("4"), minimum: 1, exclusiveMinimum: true }, 1, false],
    ["no draft: a flag", { maximum: 1, exclusiveMaximum: true }, 1, false],
    ["draft 4 has no const", { ...draft("4"), const: 1 }, 2, true],
    [
      "draft 7: beside $ref",
      { ...draft("7"), $ref: "#/definitions/a", minimum: 5, definitions: { a: {} } },
      1,
      true,
    ],
    [
      "2020-12: beside $ref",
      { ...year("2020-12"), $ref: "#/$defs/a", minimum: 5, $defs: { a: {} } },
      1,
      false,
    ],
    [
      "draft 7: a tuple",
      { ...draft("7"), items: [{ type: "string" }], additionalItems: false },
      ["x", 1],
      false,
    ],
    [
      "2020-12 has no dependencies",
      { ...year("2020-12"), dependencies: { a: ["b"] } },
      { a: 1 },
      true,
    ],
    ["draft 6: dependencies", { ...draft("6"), dependencies: { a: ["b"] } }, { a: 1 }, false],
    [
      "2019-09: beside dependentSchemas",
      { ...year("2019-09"), dependentSchemas: { a: { required: ["b"] } } },
      { a: 1 },
      false,
    ],
    ["an unknown draft", { $schema: "https://example.com/mine", type: "string" }, 1, false],
  ])("%s", (_, schema, value, fits) => {
    expect(check(schema, value)).toHaveLength(fits ? 0 : 1);
  });
});

describe("checkSchema() follows references inside the schema", () => {
  test.each<[string, PlainJson]>([
    ["#/$defs/a", { $defs: { a: { type: "string" } } }],
    ["#/definitions/a~1b%20c", { definitions: { "a/b c": { type: "string" } } }],
    ["#name", { $defs: { a: { $anchor: "name", type: "string" } } }],
    [
      "item.json",
      { $id: "https://example.com/tool.json", $defs: { a: { $id: "item.json", type: "string" } } },
    ],
    ["#/components/schemas/a", { components: { schemas: { a: { type: "string" } } } }],
    ["urn:x:item", { $defs: { a: { $id: "urn:x:item", type: "string" } } }],
  ])("%s", (reference, rest) => {
    const schema = { ...(rest as object), properties: { v: { $ref: reference } } };
    expect(check(schema, { v: 1 })).toEqual(["/v: must be string"]);
    expect(check(schema, { v: "x" })).toEqual([]);
  });

  test("a recursive schema ends with the value", () => {
    const tree = {
      $ref: "#/$defs/node",
      $defs: {
        node: { properties: { value: { type: "integer" }, next: { $ref: "#/$defs/node" } } },
      },
    };
    expect(check(tree, { next: { next: { value: "x" } } })).toEqual([
      "/next/next/value: must be integer",
    ]);
  });

  test("two tools' schemas with the same address do not interfere", () => {
    const shared = (type: string) => ({
      $id: "https://example.com/shared",
      properties: { a: { $ref: "#/$defs/a" } },
      $defs: { a: { type } },
    });
    expect(check(shared("string"), { a: "x" })).toEqual([]);
    expect(check(shared("integer"), { a: 1 })).toEqual([]);
  });
});

describe("checkSchema() does not check unusable parts", () => {
  test.each<[string, PlainJson, PlainJson]>([
    ["nullable beside $ref", { $ref: "#/definitions/A", nullable: true }, null],
    ["nullable beside an enum", { type: "string", enum: ["x"], nullable: true }, null],
    ["required as a flag", { type: "string", required: true }, "x"],
    ["an unknown type", { type: "any" }, 1],
    ["types with an unknown one", { type: ["text", "null"] }, "x"],
    ["a bound as a text", { minLength: "3" }, "x"],
    ["keywords that are null", { type: "string", enum: null, pattern: null, items: null }, "x"],
    ["a reference to nowhere", { $ref: "#/components/schemas/A" }, "x"],
    ["a reference to elsewhere", { $ref: "https://example.com/a.json" }, "x"],
    ["a pattern with a back-reference", { pattern: "^(a)\\1$" }, "x"],
    ["a multiple of 0", { multipleOf: 0 }, 1],
    ["properties as a list", { properties: [], additionalProperties: false }, { b: 1 }],
    [
      "a key pattern",
      { patternProperties: { "(a)\\1": {} }, additionalProperties: false },
      { b: 1 },
    ],
    ["one of patterns", { oneOf: [{ pattern: "^(a)\\1" }, { pattern: "^(b)\\1" }] }, "aa"],
    ["one of formats", { oneOf: [{ format: "uri" }, { format: "email" }] }, "a@b.c"],
    ["not a pattern", { not: { pattern: "^(a)\\1" } }, "b"],
    ["if a pattern", { if: { pattern: "^(a)\\1" }, else: false }, "b"],
    ["at most one of a pattern", { contains: { pattern: "^(a)\\1" }, maxContains: 1 }, ["a", "b"]],
    ["unevaluated beside nowhere", { $ref: "#/nowhere", unevaluatedProperties: false }, { b: 1 }],
    ["required among the properties", { properties: { required: ["b"] } }, { required: 1 }],
  ])("%s", (_, schema, value) => {
    expect(checkMember(schema, value)).toEqual([]);
  });

  test("usable parts beside it are checked", () => {
    expect(checkMember({ type: "string", required: true, minLength: "1" }, 1)).toEqual([
      "/a: must be string",
    ]);
  });
});

describe("checkSchema() ends for every schema", () => {
  const doubling = (depth: number, combining = "allOf", last: PlainJson = {}): PlainJson => ({
    $ref: "#/$defs/d0",
    $defs: Object.fromEntries(
      Array.from({ length: depth }, (_, n) => [
        `d${n}`,
        n + 1 === depth
          ? last
          : { [combining]: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
      ]),
    ),
  });
  const names = Array.from({ length: 5_000 }, (_, n) => `p${n}`);
  const listOf = (items: PlainJson) => ({ properties: { a: { items } } });
  const manyOf = (length: number, make: (n: number) => PlainJson) => ({
    properties: { a: { anyOf: Array.from({ length }, (_, n) => make(n)) } },
  });

  test.each<[string, PlainJson, PlainJson, string]>([
    ["references that double", doubling(40), {}, "it takes more than 1000000 steps"],
    [
      "alternatives that double and fit none",
      doubling(40, "anyOf", false),
      {},
      "it takes more than 1000000 steps",
    ],
    [
      "many properties of many objects",
      listOf({ properties: Object.fromEntries(names.map((name) => [name, {}])) }),
      { a: Array.from({ length: 2_000 }, () => ({})) },
      "it takes more than 1000000 steps",
    ],
    [
      "many required names of many objects",
      listOf({ not: { not: { required: names } } }),
      { a: Array.from({ length: 2_000 }, () => ({})) },
      "it takes more than 1000000 steps",
    ],
    [
      "many lengths of a long text",
      manyOf(400, (n) => ({ minLength: 200_000 + n })),
      { a: "a".repeat(100_000) },
      "it takes more than 1000000 steps",
    ],
    [
      "many patterns that begin with a text, on a long one",
      manyOf(100, (n) => ({ pattern: `zz${n}` })),
      { a: "z".repeat(100_000) },
      "it takes more than 1000000 steps",
    ],
    ["a reference to itself", { $ref: "#" }, {}, "it leads through more than 500 schemas"],
    [
      "a pattern on a long text",
      { properties: { a: { pattern: "^[a-z]+$" } } },
      { a: "a".repeat(500_000) },
      "it takes more than 1000000 steps",
    ],
  ])("%s", (_, schema, value, unchecked) => {
    expect(checkSchema(dict(schema), toPyValue(value))).toEqual({ mismatches: [], unchecked });
  });

  test("a pattern that would backtrack for years is checked", () => {
    const schema = { properties: { a: { pattern: "^(a+)+$" } } };
    expect(check(schema, { a: `${"a".repeat(5_000)}!` })).toHaveLength(1);
  });

  test("no more than 100 mismatches are listed", () => {
    const schema = listOf({ type: "string" });
    const { mismatches } = checkSchema(
      dict(schema),
      toPyValue({ a: Array.from({ length: 50_000 }, () => 1) }),
    );
    expect(mismatches).toHaveLength(100);
  });

  test("a schema and a value that nest deeply", () => {
    let schema: PyDict = new Map();
    for (let depth = 0; depth < 20_000; depth++) schema = new Map([["not", schema]]);
    expect(checkSchema(schema, new Map()).unchecked).toBe("it leads through more than 500 schemas");
  });
});
