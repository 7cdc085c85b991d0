import { describe, expect, test } from "vitest";
import { workedMs } from "../../packages/tool-parsers/src/worked-ms.fixture.ts";
import type { Attempt } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { repairCall } from "./repair-call.ts";

function invalid(raw: string, name?: string): Attempt {
  return {
    status: "invalid-json",
    diagnostics: [],
    raw,
    span: [0, raw.length],
    ...(name !== undefined && { name }),
  };
}

describe("repairCall()", () => {
  test.each([
    [
      '{"a": 1, "b": [1, 2, ], }',
      [
        ["a", 1n],
        ["b", [1n, 2n]],
      ],
    ],
    ['{"a": "two\nlines\tand a \\" quote"}', [["a", 'two\nlines\tand a " quote']]],
    [
      "{'a': True, 'b': None}",
      [
        ["a", true],
        ["b", null],
      ],
    ],
    ['{"a": {"b": "c"}', [["a", new Map([["b", "c"]])]]],
    ['{"a": "}, ]", }', [["a", "}, ]"]]],
  ] as const)("reads the arguments %s", (raw, entries) => {
    expect(repairCall(invalid(`<x>${raw}</x>`, "act"))).toEqual({
      name: "act",
      arguments: new Map<string, unknown>(entries),
    });
  });

  test.each(["{bad}", "no braces", "{", '{"a": }', '{"a": 1} {"b": 2}', "{1, 2}", ""])(
    "does not guess what %j was meant to be",
    (raw) => {
      expect(repairCall(invalid(raw, "act"))).toBeUndefined();
    },
  );

  test("requires a name and an object of arguments if the name is in the JSON", () => {
    expect(repairCall(invalid('{"name": "act", "parameters": {"a": 1,}}'))).toEqual({
      name: "act",
      arguments: new Map([["a", 1n]]),
    });
    expect(repairCall(invalid('{"name": "act", "arguments": [1,]}'))).toBeUndefined();
    expect(repairCall(invalid('{"arguments": {"a": 1,}}'))).toBeUndefined();
  });

  test("takes linear time", () => {
    const timeOf = (size: number): number => {
      const hostile = [
        `{"a": ${"[".repeat(size)}`,
        `{"a": 1${" ,".repeat(size)}}`,
        `{"${'\\"'.repeat(size)}}`,
        `{${" ".repeat(size)}}x`,
        `{"a": ${'"b" '.repeat(size)}}`,
      ];
      const start = workedMs();
      for (const raw of hostile) repairCall(invalid(raw, "act"));
      return workedMs() - start;
    };
    timeOf(2_000);
    expect(timeOf(40_000)).toBeLessThan(4_000);
  });
});
