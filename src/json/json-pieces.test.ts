import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonPieces } from "./json-pieces.ts";

function joined(value: unknown, limit?: number): string {
  return [...jsonPieces(value, limit)].join("");
}

describe("jsonPieces()", () => {
  test("writes the text of JSON.stringify(), for any piece size", () => {
    const values = fc.jsonValue({ maxDepth: 4 });
    fc.assert(
      fc.property(values, fc.integer({ min: 1, max: 40 }), (value, limit) => {
        expect(joined(value, limit)).toBe(JSON.stringify(value));
      }),
    );
  });

  test.each(["constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf", "__proto__"])(
    "writes a list that is a member named %s",
    (name) => {
      for (const list of [[12, 40], ["12", "40"], ["a.js"], []]) {
        const value = Object.defineProperty({}, name, { value: list, enumerable: true });
        expect(joined(value)).toBe(JSON.stringify(value));
      }
    },
  );

  test("writes lists of stretches that repeat an item as JSON.stringify() does", () => {
    const item = fc.oneof(
      fc.constantFrom(
        0,
        -0,
        1,
        NaN,
        "",
        "1",
        "\ud83e",
        '"',
        "a text that is too long to be repeated",
      ),
      fc.constantFrom(null, true, undefined, [1], { a: "b" }),
      fc.double(),
    );
    const stretch = fc.tuple(item, fc.integer({ min: 1, max: 70 }));
    fc.assert(
      fc.property(fc.array(stretch), fc.integer({ min: 1, max: 200 }), (stretches, limit) => {
        const list = stretches.flatMap(([one, count]) => new Array<unknown>(count).fill(one));
        expect(joined(list, limit)).toBe(JSON.stringify(list));
        expect(joined({ list }, limit)).toBe(JSON.stringify({ list }));
      }),
    );
  });

  test.each([
    ["members that JSON does not know", { a: undefined, b: () => 1, c: Symbol("c"), d: 1 }],
    ["items that JSON does not know", [undefined, () => 1, Symbol("c"), 1]],
    ["holes", new Array<number>(3)],
    ["dates", { at: new Date(0), list: [new Date(0)] }],
    ["numbers beyond JSON", [NaN, -Infinity, -0, 1e21, 0.1]],
    ["a map", new Map([[1, 2]])],
    ["an own toJSON() that gives nothing", { a: { toJSON: () => undefined, b: [1, 2, 3] }, c: 2 }],
    ["surrogates, whole and lone", "ab🦊🦊🦊\ud83e\udd8a\ud83e c\udd8a"],
    ["a lone half before a whole pair", `${"x".repeat(15)}\ud83e🦊${"x".repeat(16)}`],
    ["texts that need escapes", '\u2028"\\\n\u0000'.repeat(9)],
  ])("spells %s alike", (_what, value) => {
    for (const limit of [1, 2, 3, 100]) expect(joined(value, limit)).toBe(JSON.stringify(value));
  });

  test("cuts a long row into pieces of bounded size", () => {
    const row = {
      tokenIds: Array.from({ length: 100_000 }, (_, index) => index % 150_000),
      logprobs: Array.from({ length: 100_000 }, (_, index) => -index / 7),
      text: "x".repeat(1_000_000),
      turns: Array.from({ length: 300 }, (_, turnIndex) => ({ turnIndex, text: "y".repeat(999) })),
    };
    const pieces = [...jsonPieces(row)];
    expect(pieces.join("")).toBe(JSON.stringify(row));
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(180_000);
  });

  test("leaves a small value in one piece", () => {
    expect([...jsonPieces({ a: [1, 2, { b: "c" }] })]).toEqual(['{"a":[1,2,{"b":"c"}]}']);
  });
});
