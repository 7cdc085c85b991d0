import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { toPyValue, type PlainJson } from "../python/value.ts";
import { plainlyFits } from "./plain-schema.ts";

const text = { type: "string", description: "such as '#W0000000'", format: "date" };

const fitting: readonly [schema: PlainJson, value: PlainJson][] = [
  [{}, { a: 1 }],
  [{ type: "object", properties: {} }, {}],
  [{ type: "object", properties: {} }, { constructor: 1 }],
  [{ type: "object", properties: { a: text }, required: ["a"] }, { a: "" }],
  [{ type: "object", properties: { a: text } }, { b: 1 }],
  [{ properties: { a: text }, additionalProperties: false }, { a: "x" }],
  [{ properties: { a: text }, additionalProperties: true }, { b: "x" }],
  [{ properties: { a: { type: "string", enum: ["x", "y"] } } }, { a: "y" }],
  [{ properties: { a: { type: "array", items: { type: "integer" } } } }, { a: [1, 2n] }],
  [{ properties: { a: { type: "number" }, b: { type: "boolean" } } }, { a: 0.5, b: false }],
  [{ properties: { a: { type: "object", required: ["b"] } } }, { a: { b: null } }],
];

const others: readonly [schema: PlainJson, value: PlainJson][] = [
  [{ type: "object", required: ["a"] }, {}],
  [{ required: ["toString"] }, {}],
  [{ properties: { constructor: text } }, {}],
  [{ properties: { toString: text } }, { toString: "x" }],
  [{ properties: { a: text }, additionalProperties: false }, { b: "x" }],
  [{ additionalProperties: false }, {}],
  [{ properties: { a: text } }, { a: 1 }],
  [{ properties: { a: text } }, { a: null }],
  [{ properties: { a: { enum: ["x"] } } }, { a: "y" }],
  [{ properties: { a: { enum: [1] } } }, { a: 1 }],
  [{ properties: { a: { type: "integer" } } }, { a: 1.5 }],
  [{ properties: { a: { type: "number" } } }, { a: Number.NaN }],
  [{ properties: { a: { type: "number" } } }, { a: 10n ** 400n }],
  [{ properties: { a: { type: ["string", "null"] } } }, { a: "x" }],
  [{ properties: { a: { type: "array", items: text } } }, { a: ["x", 1] }],
  [{ properties: { a: { ...text, minLength: 2 } } }, { a: "x" }],
  [{ properties: { a: { $ref: "#" } } }, { a: "x" }],
  [{ properties: { a: false } }, { a: "x" }],
  [{ properties: [] }, {}],
  [{ type: "thing" }, {}],
  [{ required: "a" }, { a: 1 }],
  [{ not: {} }, {}],
];

const fits = ([schema, value]: readonly [PlainJson, PlainJson]) =>
  plainlyFits(toPyValue(schema), toPyValue(value));

/** With numbers for integers, as the library takes them. */
function ordinary(value: PlainJson | undefined): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(ordinary);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, ordinary(item)]));
}

describe("plainlyFits()", () => {
  test.each(fitting)("is certain of %o and %o", (schema, value) => {
    expect(fits([schema, value])).toBe(true);
  });

  test.each(others)("says nothing of %o and %o", (schema, value) => {
    expect(fits([schema, value])).toBe(false);
  });

  test("is never certain of what the library finds a fault with", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false });
    const values = [...fitting, ...others].map(([, value]) => value);
    let certain = 0;
    for (const [schema] of [...fitting, ...others]) {
      for (const value of values.filter((each) => fits([schema, each]))) {
        certain += 1;
        expect(ajv.validate(ordinary(schema) as object, ordinary(value))).toBe(true);
      }
    }
    expect(certain).toBeGreaterThan(100);
  });
});
