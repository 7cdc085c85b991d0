import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parsePythonJson } from "./json-parse.ts";
import { stringifyPythonJson } from "./json-stringify.ts";
import type { PyValue } from "../value.ts";

describe("stringifyPythonJson()", () => {
  test("has Python's separators, key order and number texts", () => {
    const text = '{"b": 1, "10": 1.0, "2": [1e+16, 1e-05, 0.0001, -0.0, 123456789012345678901]}';
    expect(stringifyPythonJson(parsePythonJson(text))).toBe(text);
    expect(stringifyPythonJson([Number.NaN, Infinity, -Infinity, true, null])).toBe(
      "[NaN, Infinity, -Infinity, true, null]",
    );
  });

  test("escapes all but printable ASCII by default, and only required characters without `ensureAscii`", () => {
    const value = '"\\/\b\f\n\r\t\u0001\u007Fé\u2028\u{1F600}\ud83d';
    expect(stringifyPythonJson(value)).toBe(
      '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f\\u00e9\\u2028\\ud83d\\ude00\\ud83d"',
    );
    expect(stringifyPythonJson(value, { ensureAscii: false })).toBe(
      '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\u007Fé\u2028\u{1F600}\ud83d"',
    );
  });

  test("escapes exactly the non-plain characters of any text", () => {
    const unitText = (unit: string, isKept: boolean): string => {
      const short = '"\\\b\f\n\r\t'.indexOf(unit);
      if (short !== -1) return `\\${'"\\bfnrt'.charAt(short)}`;
      if (isKept) return unit;
      return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
    };
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.nat(0x80), fc.nat(0xffff))), (codes) => {
        const text = String.fromCharCode(...codes);
        const units = text.split("");
        const inAscii = units.map((unit) => unitText(unit, unit >= " " && unit <= "~")).join("");
        const always = units.map((unit) => unitText(unit, unit >= " ")).join("");
        expect(stringifyPythonJson(text)).toBe(`"${inAscii}"`);
        expect(stringifyPythonJson(text, { ensureAscii: false })).toBe(`"${always}"`);
      }),
    );
  });

  test("indents by a number or a text, with empty containers on one line", () => {
    const value = parsePythonJson('{"a": [1, {}], "b": []}');
    expect(stringifyPythonJson(value, { indent: 2 })).toBe(
      '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}',
    );
    expect(stringifyPythonJson([1n], { indent: "\t" })).toBe("[\n\t1\n]");
    expect(stringifyPythonJson([1n, 2n], { indent: 0 })).toBe("[\n1,\n2\n]");
  });

  test("sorts keys by code point and takes other separators", () => {
    const value = new Map<string, PyValue>([
      ["\u{1F600}", 1n],
      ["\uFFFD", 2n],
      ["a", [3n, 4n]],
    ]);
    expect(
      stringifyPythonJson(value, { sortKeys: true, separators: [",", ":"], ensureAscii: false }),
    ).toBe('{"a":[3,4],"\uFFFD":2,"\u{1F600}":1}');
  });

  test("refuses values that Python refuses to print", () => {
    expect(() => stringifyPythonJson(10n ** 4300n)).toThrow(
      "Exceeds the limit (4300 digits) for integer string conversion; " +
        "use sys.set_int_max_str_digits() to increase the limit",
    );
    let deep: PyValue = [];
    for (let depth = 0; depth < 100_000; depth++) deep = [deep];
    expect(() => stringifyPythonJson(deep)).toThrow("maximum recursion depth exceeded");
  });
});
