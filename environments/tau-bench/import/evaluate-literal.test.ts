import { describe, expect, test } from "vitest";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { evaluateLiteral, type RecordMaker } from "./evaluate-literal.ts";
import { assignedValue, readPythonModule } from "./python-module.ts";

function evaluate(literal: string): PyValue {
  const module = readPythonModule(`# first line\nX = ${literal}\n`, "x.py");
  return evaluateLiteral(
    module,
    assignedValue(module, "X"),
    new Map<string, RecordMaker>([
      ["Point", (fields) => ({ value: fields })],
      ["Never", () => ({ found: "with a flaw", expected: "none" })],
    ]),
  );
}

describe("evaluateLiteral()", () => {
  test.each<[string, PyValue]>([
    [`'a' "b" '''c''' """d"""`, "abcd"],
    [`("one "\n  # a comment\n  'two')`, "one two"],
    [
      String.raw`'\x41\u00e9\U0001F600\101\n\t\\\'\"\q\
'`,
      "A\u00e9\u{1F600}A\n\t\\'\"\\q",
    ],
    [String.raw`r'\n' R"\x41" u"\n"`, "\\n\\x41\n"],
    [`"""line\r\nline"""`, "line\nline"],
    [String.raw`"\ud800"`, "\ud800"],
    ["None", null],
    ["[True, False]", [true, false]],
    ["[0, 1_000, 0x_fF, 0o17, 0B11, 00]", [0n, 1000n, 255n, 15n, 3n, 0n]],
    ["[1.0, .5, 5., 1e3, 1_0.0_1E-2]", [1, 0.5, 5, 1000, 0.1001]],
    ["[5., -5., 5.e3, 5.e+3, 5.e-1]", [5, -5, 5000, 5000, 0.5]],
    ["[-1, +1.5, - -2, -0.0]", [-1n, 1.5, 2n, -0]],
    ["123456789012345678901234567890", 123456789012345678901234567890n],
    ["(1,)", [1n]],
    ["()", []],
    ["(1)", 1n],
    ["[1, (2, 3,), [],]", [1n, [2n, 3n], []]],
    ["{}", new Map()],
    [
      `{"10": 1, "__proto__": {"a": ()}, "10": 2,}`,
      new Map<string, PyValue>([
        ["10", 2n],
        ["__proto__", new Map([["a", []]])],
      ]),
    ],
    [
      `Point(x=1, y=[Point(x="z")],)`,
      new Map<string, PyValue>([
        ["x", 1n],
        ["y", [new Map([["x", "z"]])]],
      ]),
    ],
  ])("reads %s", (literal, value) => {
    expect(evaluate(literal)).toEqual(value);
  });

  test.each([
    ["[\n1,\nf'{a}']", "x.py:4: an f-string, expected a literal"],
    [`"a" f"b"`, "x.py:2: an f-string"],
    ["{'a': NAME}", "x.py:2: the name NAME with an unknown value"],
    ["nan", "the name nan"],
    ["{1, 2}", "a set"],
    ["{1: 2}", "a key that is not a text"],
    ["{'a': 1, **b}", "an unpacked **"],
    ["[*a]", "an unpacked *"],
    ["b'a'", "bytes, expected a text"],
    ["1j", "the number 1j"],
    ["012", "leading zeros in decimal integer literals are not permitted"],
    ["'a' + 'b'", "a computed value"],
    ["not True", "an operator"],
    ["~1", "an operator"],
    ["-'a'", "an operator"],
    ["[a for a in b]", "a comprehension"],
    ["'a'.upper()", "a call of 'a'.upper()"],
    ["open('x')", "a call of open()"],
    ["Point(1)", "an argument without a name"],
    ["Point(**a)", "an argument without a name"],
    ["Point(x=1, x=2)", "x given twice"],
    ["Never(\n)", "x.py:2: Never() with a flaw, expected none"],
    [String.raw`"\N{BULLET}"`, "character names are not supported"],
    ["lambda: 1", "a lambda"],
    ["...", "an ellipsis"],
    ["1 if True else 2", "a conditional"],
    ["[1", "broken Python"],
    ["'a", "x.py:2: a string is not closed"],
    ["a.b", "an attribute or index"],
    ["5.e", "invalid number 5.e"],
    [`${"[".repeat(300)}${"]".repeat(300)}`, "too many nested parentheses"],
    [`1${"0".repeat(5000)}`, "Exceeds the limit (4300 digits)"],
  ])("refuses %s", (literal, message) => {
    expect(() => evaluate(literal)).toThrow(message);
  });
});
