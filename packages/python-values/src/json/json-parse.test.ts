import { describe, expect, test } from "vitest";
import {
  MAX_JSON_DEPTH,
  PythonJsonError,
  decodePythonJsonAt,
  parsePythonJson,
} from "./json-parse.ts";
import { PythonError, PythonValueError } from "../python-error.ts";

describe("parsePythonJson()", () => {
  test("keeps integers and floats apart, and integers unbounded", () => {
    expect(parsePythonJson("[1, 1.0, -0, 1e2, 9007199254740993]")).toEqual([
      1n,
      1,
      0n,
      100,
      9007199254740993n,
    ]);
    expect(Object.is(parsePythonJson("-0.0"), -0)).toBe(true);
    expect(parsePythonJson("1e400")).toBe(Number.POSITIVE_INFINITY);
  });

  test("accepts NaN and the infinities", () => {
    expect(parsePythonJson("[NaN, Infinity, -Infinity]")).toEqual([
      Number.NaN,
      Infinity,
      -Infinity,
    ]);
  });

  test("keeps the order of keys, digits and `__proto__` included; the last equal key wins", () => {
    const value = parsePythonJson('{"b": 1, "10": 2, "2": 3, "__proto__": 4, "b": 5}');
    expect([...(value as Map<string, bigint>)]).toEqual([
      ["b", 5n],
      ["10", 2n],
      ["2", 3n],
      ["__proto__", 4n],
    ]);
  });

  test("joins escaped surrogate pairs and lets lone ones pass", () => {
    expect(parsePythonJson('"\\ud83d\\ude00 \\ud83d \\u00E9 \\/"')).toBe("\u{1F600} \ud83d é /");
  });

  test.each([
    ["", "Expecting value: line 1 column 1 (char 0)"],
    [" \n x", "Expecting value: line 2 column 2 (char 3)"],
    ["[", "Expecting value: line 1 column 2 (char 1)"],
    ["[1,]", "Expecting value: line 1 column 4 (char 3)"],
    ["[1 2]", "Expecting ',' delimiter: line 1 column 4 (char 3)"],
    ["{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"],
    ['{"a":1,}', "Expecting property name enclosed in double quotes: line 1 column 8 (char 7)"],
    ['{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"],
    ['{"a": 1', "Expecting ',' delimiter: line 1 column 8 (char 7)"],
    ["007", "Extra data: line 1 column 2 (char 1)"],
    ["+7", "Expecting value: line 1 column 1 (char 0)"],
    ["tru", "Expecting value: line 1 column 1 (char 0)"],
    ['"ab', "Unterminated string starting at: line 1 column 1 (char 0)"],
    ['"\\', "Unterminated string starting at: line 1 column 1 (char 0)"],
    ['"\\x"', "Invalid \\escape: line 1 column 2 (char 1)"],
    ['"\\u12G4"', "Invalid \\uXXXX escape: line 1 column 3 (char 2)"],
    ['"\\u12', "Invalid \\uXXXX escape: line 1 column 3 (char 2)"],
    ['"a\nb"', "Invalid control character at: line 1 column 3 (char 2)"],
    ["\uFEFF1", "Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)"],
    ['"\u{1F600}" x', "Extra data: line 1 column 5 (char 4)"],
  ])("refuses %j as CPython does", (text, message) => {
    expect(() => parsePythonJson(text)).toThrow(PythonJsonError);
    expect(() => parsePythonJson(text)).toThrow(
      expect.objectContaining({ message, exception: "JSONDecodeError" }),
    );
  });

  test("accepts control characters if it is not strict", () => {
    expect(parsePythonJson('"a\nb\u0001"', { strict: false })).toBe("a\nb\u0001");
  });

  test("refuses integers of more than 4,300 digits, as a ValueError", () => {
    expect(parsePythonJson("1".repeat(4300))).toBe(BigInt("1".repeat(4300)));
    const error = catchError(() => parsePythonJson(`-${"1".repeat(4301)}`));
    expect(error).toBeInstanceOf(PythonValueError);
    expect(error).not.toBeInstanceOf(PythonJsonError);
    expect((error as Error).message).toBe(
      "Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits; " +
        "use sys.set_int_max_str_digits() to increase the limit",
    );
  });

  test("limits nesting with its own error", () => {
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    expect(() => parsePythonJson(nested(MAX_JSON_DEPTH))).not.toThrow();
    const error = catchError(() => parsePythonJson(nested(100_000)));
    expect(error).toBeInstanceOf(PythonError);
    expect(error).not.toBeInstanceOf(PythonValueError);
    expect((error as Error).message).toBe(
      "maximum recursion depth exceeded while decoding a JSON array from a unicode string",
    );
  });
});

describe("decodePythonJsonAt()", () => {
  test("reads one value and returns its end, in UTF-16 units", () => {
    expect(decodePythonJsonAt('\u{1F600}{"a": "\u{1F600}"};', 2)).toEqual({
      value: new Map([["a", "\u{1F600}"]]),
      end: 13,
    });
  });

  test("skips no white space and gives the place of a failure in both countings", () => {
    const error = catchError(() => decodePythonJsonAt("\u{1F600} 1", 2)) as PythonJsonError;
    expect(error.index).toBe(2);
    expect(error.message).toBe("Expecting value: line 1 column 2 (char 1)");
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
