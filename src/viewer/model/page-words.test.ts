import { describe, expect, test } from "vitest";
import { callArguments, indentJson } from "./call-arguments.ts";
import { formatLogprob } from "./heat.ts";
import { pageTitle } from "./page-title.ts";
import { readRoute } from "./route.ts";

describe("callArguments()", () => {
  test("shows texts as they are, and keeps the digits of numbers", () => {
    const json =
      '{"code": "a = \\"1\\"\\nb", "big": 12345678901234567890, "x\\"y": 5.0, "on": true}';
    expect(callArguments(json)).toEqual([
      { name: "code", text: 'a = "1"\nb' },
      { name: "big", text: "12345678901234567890" },
      { name: 'x"y', text: "5.0" },
      { name: "on", text: "true" },
    ]);
    expect(callArguments(" { } ")).toEqual([]);
  });

  test("refuses what is no object", () => {
    expect(callArguments("[1]")).toBeUndefined();
    expect(callArguments('{"a": ')).toBeUndefined();
  });

  test("indents long values", () => {
    expect(indentJson('{"a": [1, 2]}')).toBe('{"a": [1, 2]}');
    const long = "x".repeat(60);
    expect(indentJson(`{"a":{"b":"${long}","c":[]},"d":1}`)).toBe(
      `{\n  "a": {\n    "b": "${long}",\n    "c": []\n  },\n  "d": 1\n}`,
    );
    expect(indentJson(`[ "${long}" , 2 ]`)).toBe(`[\n  "${long}",\n  2\n]`);
  });
});

test("formatLogprob() has four digits", () => {
  expect(
    [-0.04453175142, -12.5, -0.00004453175, 0, Number.NEGATIVE_INFINITY].map(formatLogprob),
  ).toEqual(["-0.0445", "-12.5000", "-4.453e-5", "0", "-Infinity"]);
});

test.each([
  ["#/", "Runs · Turnwright"],
  ["#/run/a", "a · Turnwright"],
  ["#/run/a?view=groups", "groups · a · Turnwright"],
  ["#/about/a", "settings and metrics · a · Turnwright"],
  ["#/episode/a/shop%2F0%230", "shop/0#0 · a · Turnwright"],
  ["#/group/a/shop%2F0", "attempts at shop/0 · a · Turnwright"],
  ["#/compare/a/b", "a and b · Turnwright"],
])("the page of %s is titled", (hash, title) => {
  expect(pageTitle(readRoute(hash))).toBe(title);
});
