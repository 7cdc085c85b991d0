import { describe, expect, test } from "vitest";
import { hideEverywhere } from "../secrets/redactor.ts";
import { toPlainJson, toPyValue, type PlainJson } from "../../packages/python-values/src/value.ts";
import { briefText, briefValue } from "./brief-value.ts";

const brief = (value: PlainJson) => toPlainJson(briefValue(toPyValue(value)));

describe("briefValue()", () => {
  test.each<[PlainJson]>([
    [{ id: "#1", items: [{ price: 1.5 }, null, true], note: "" }],
    ["x".repeat(2000)],
    [[]],
  ])("does not change a short value: %j", (value) => {
    expect(briefValue(toPyValue(value))).toEqual(toPyValue(value));
  });

  test("cuts a text before a key, and not within it", () => {
    hideEverywhere({ secrets: ["brief-canary-0123456789"] });
    expect(brief(`${"x".repeat(1990)}brief-canary-0123456789`)).toBe(`${"x".repeat(1990)}…`);
  });

  test("shortens long texts, lists and objects, and marks the cut", () => {
    expect(brief("x".repeat(2001))).toBe(`${"x".repeat(2000)}…`);
    expect(brief(Array.from({ length: 100_000 }, () => 1))).toEqual([
      ...Array.from({ length: 1999 }, () => 1),
      "…",
    ]);
    expect(brief({ text: "x".repeat(3000), more: 1 })).toEqual({
      text: `${"x".repeat(1994)}…`,
      "…": "…",
    });
    expect(brief([["y".repeat(1998)], { more: 1 }])).toEqual([["y".repeat(1998)], "…"]);
  });

  test("halves no character", () => {
    expect(briefText(`${"x".repeat(1999)}😀y`)).toBe(`${"x".repeat(1999)}…`);
    expect(briefText(`${"x".repeat(1998)}😀y`)).toBe(`${"x".repeat(1998)}😀…`);
  });
});
