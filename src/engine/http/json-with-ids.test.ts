import fc from "fast-check";
import { expect, test } from "vitest";
import { InvariantError } from "../../errors.ts";
import { jsonWithIds } from "./json-with-ids.ts";
import { largestTokenId } from "../token-id.ts";

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

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
