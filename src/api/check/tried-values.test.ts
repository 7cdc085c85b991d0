import { expect, test } from "vitest";
import { toPyValue, type PlainJson } from "../../../packages/python-values/src/value.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import { fittingValue } from "./fitting-value.ts";
import { triedValues } from "./tried-values.ts";

/** The number of values that are tried for every schema. */
const usualCount = triedValues(new Map()).length;

/** The descriptions of the values that are tried because of the schema. */
function triedFor(schema: PlainJson): readonly string[] {
  return triedValues(toPyValue(schema))
    .slice(usualCount)
    .map(([what]) => what);
}

test.each<readonly [string, PlainJson, readonly string[]]>([
  [
    "a whole number with bounds",
    { type: "integer", minimum: 0, maximum: 10 },
    ["0", "1", "9", "10", "11", "1.0", "2^31", "2^53 + 1", "-2^63 - 1", "10^100"],
  ],
  [
    "a number above a bound",
    { type: "number", exclusiveMinimum: 0.25 },
    ["-0.75", "0.25", "1.25", "0", "-0.0", "1e308", "-1e308", "5e-324"],
  ],
  [
    "a text with limits",
    { type: "string", minLength: 2, maxLength: 1000 },
    [
      "a text of 1 characters",
      "a text of 2 characters",
      "a text of 3 characters",
      "a text of 999 characters",
      "a text of 1,000 characters",
      "a text of 1,001 characters",
      "a space",
      "letters of several scripts",
      "line ends and quotes",
      "digits",
    ],
  ],
  ["choices", { enum: ["red", "blue", 7] }, ['"red"', '"blue"', "7", '"RED"', '"no such choice"']],
  ["a boolean", { type: "boolean" }, ["false"]],
  [
    "alternatives",
    { anyOf: [{ type: "boolean" }, { enum: ["a"] }] },
    ["false", '"a"', '"A"', '"no such choice"'],
  ],
  [
    "a list with limits",
    { type: "array", items: { type: "boolean" }, maxItems: 2 },
    [
      "a list of 1 items",
      "a list of 2 items",
      "a list of 3 items",
      "a list of 1,000 items",
      "[null]",
      "[false]",
    ],
  ],
  [
    "an object",
    { type: "object", properties: { on: { type: "boolean" } } },
    ["an object without on", "an object with on: null", "an object with on: false"],
  ],
])("triedValues() tries the limits of %s", (_, schema, expected) => {
  expect(triedFor(schema)).toEqual(expected);
});

test("triedValues() tries nulls, empty and long values for every schema", () => {
  const names = triedValues(undefined).map(([what]) => what);
  expect(names).toHaveLength(usualCount);
  expect(names).toEqual(
    expect.arrayContaining(["null", "an empty text", "a text of 100,000 characters", "2^70"]),
  );
});

test.each<readonly [PlainJson, PlainJson]>([
  [{ type: "string", minLength: 3 }, "xxx"],
  [{ type: "integer", exclusiveMinimum: 4 }, 5],
  [{ type: "integer", maximum: -2 }, -2],
  [{ type: "array", minItems: 2, items: { type: "boolean" } }, [true, true]],
  [{ oneOf: [{ const: "on" }] }, "on"],
])("fittingValue() fits %j", (schema, expected) => {
  expect(fittingValue(toPyValue(schema))).toEqual(toPyValue(expected));
});

test("lists in lists have a million characters at most", () => {
  const list = (items: PlainJson): PlainJson => ({ type: "array", minItems: 50_000, items });
  const schema = toPyValue(list(list(list({ type: "string", minLength: 9_000 }))));
  const lengths = [fittingValue(schema), ...triedValues(schema).map(([, value]) => value)].map(
    (value) => writeCompactJson(value).length,
  );
  expect(Math.max(...lengths)).toBeLessThan(1_000_010);
  expect(lengths[0]).toBeGreaterThan(900_000);
});
