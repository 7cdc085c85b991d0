import { expect, test } from "vitest";
import { type PlainJson, type PyDict, toPyValue } from "../../../python-values/src/index.ts";
import { findUnusableParts } from "./find-unusable-parts.ts";

const find = (schema: PlainJson) => findUnusableParts(toPyValue(schema) as PyDict);

test("findUnusableParts() names the place and the reason of each part", () => {
  const schema = {
    type: "object",
    properties: {
      kind: { type: "any" },
      code: { type: "string", pattern: "^(a)\\1$" },
      size: { type: "string", minLength: "1", required: true },
      ref: { $ref: "#/components/schemas/A" },
      required: ["kind"],
    },
    patternProperties: { "(x)\\1": {} },
  };
  expect(find(schema).toSorted()).toEqual(
    [
      'patternProperties has the pattern "(x)\\\\1", which is not used: it holds a back-reference',
      'properties/required is ["kind"], expected a schema',
      'properties/kind/type is "any", expected one of string, boolean, integer, number, array, object, null, or a list of them',
      'properties/code/pattern is "^(a)\\\\1$" (it holds a back-reference), expected a pattern that ' +
        "JavaScript or Python reads and linear time allows",
      'properties/size/minLength is "1", expected a whole number from 0 on',
      "properties/size/required is true, expected a list of names (of the object that has the property, " +
        "not beside its type)",
      'properties/ref/$ref has no target: no part is named "#/components/schemas/A"',
    ].toSorted(),
  );
});

test.each<[string, PlainJson]>([
  [
    "keywords that no draft knows",
    { "x-order": 1, example: {}, discriminator: { propertyName: "a" } },
  ],
  ["keywords that are null", { enum: null, description: null, items: null }],
  [
    "what instances hold",
    { default: { type: "txet" }, enum: [{ type: "txet" }], const: { required: true } },
  ],
  [
    "a property that is called like a keyword",
    { properties: { type: { type: "string" }, $ref: {} } },
  ],
  ["nullable", { properties: { a: { $ref: "#/$defs/A", nullable: true } }, $defs: { A: {} } }],
  ["the flags of draft 4", { minimum: 1, exclusiveMinimum: true }],
  ["boolean schemas", { properties: { a: true, b: false }, additionalProperties: true }],
  ["names that are listed twice", { required: ["a", "a"] }],
  ["an empty schema", {}],
])("findUnusableParts() accepts %s", (_, schema) => {
  expect(find(schema)).toEqual([]);
});

test("findUnusableParts() lists the first twenty", () => {
  const properties = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [`p${n}`, { type: "any" }]),
  );
  const found = find({ properties });
  expect(found).toHaveLength(21);
  expect(found.at(-1)).toBe("and 10 more parts");
});
