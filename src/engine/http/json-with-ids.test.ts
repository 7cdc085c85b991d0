import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../errors.ts";
import { type BodyBytes, joinParts } from "./byte-parts.ts";
import { jsonWithIds } from "./json-with-ids.ts";
import { GrowingIds } from "../growing-ids.ts";
import { largestTokenId } from "../token-id.ts";

const textOf = (body: BodyBytes): string => Buffer.from(joinParts(body)).toString("utf8");

test("jsonWithIds() writes the same as JSON.stringify()", () => {
  const anyId = fc.oneof(
    fc.integer({ min: 0, max: largestTokenId }),
    fc.integer({ min: 0, max: 200_000 }),
    fc.constantFrom(
      0,
      9,
      10,
      99,
      100,
      999,
      1_000,
      9_999,
      10_000,
      999_999,
      1_000_000,
      largestTokenId,
    ),
  );
  const anyFields = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(anyFields, fc.array(anyId), (fields, ids) => {
      const { ids: _, ...rest } = fields;
      expect(textOf(jsonWithIds(rest, { name: "ids", ids }))).toBe(
        JSON.stringify({ ...rest, ids }),
      );
    }),
  );
});

test("jsonWithIds() omits undefined members, as JSON does", () => {
  expect(textOf(jsonWithIds({ a: undefined }, { name: "é", ids: [7] }))).toBe('{"é":[7]}');
});

test("jsonWithIds() refuses invalid ids", () => {
  const name = "ids";
  for (const foreign of [largestTokenId + 1, -1, 0.5, NaN]) {
    expect(() => jsonWithIds({}, { name, ids: [7, foreign] })).toThrow(InvariantError);
  }
});

describe("a long list", () => {
  const ids = Array.from({ length: 100_000 }, (_, index) => (index * 48_271) % largestTokenId);
  const expected = JSON.stringify({ a: "ü", ids });

  test.each(["a list", "a view of a record"])("%s is sent in parts, repeatedly", (kind) => {
    const record = new GrowingIds();
    record.append(ids);
    const name = "ids";
    // The text of a record is kept from its second use on.
    for (let use = 0; use < 3; use++) {
      const body = jsonWithIds({ a: "ü" }, { name, ids: kind === "a list" ? ids : record.view });
      expect(body).not.toBeInstanceOf(Uint8Array);
      expect(body.byteLength).toBe(Buffer.byteLength(expected));
      expect(textOf(body)).toBe(expected);
      expect(textOf(body)).toBe(expected);
    }
  });

  test("is refused if an id is invalid", () => {
    const invalid = ids.with(70_000, -1);
    expect(() => jsonWithIds({}, { name: "ids", ids: invalid })).toThrow(InvariantError);
  });
});
