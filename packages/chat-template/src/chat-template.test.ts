import { describe, expect, test } from "vitest";
import { UsageError } from "../../python-values/src/support/index.ts";
import {
  parsePythonJson,
  type PyDict,
  type PyList,
  type PyValue,
} from "../../python-values/src/index.ts";
import { compileChatTemplate } from "./chat-template.ts";
import { TemplateError } from "./template-error.ts";

const messages: PyList = [new Map([["role", "user"]]), new Map([["role", "assistant"]])];

function render(source: string, variables: Readonly<Record<string, PyValue>> = {}): string {
  return compileChatTemplate(source).render({
    messages,
    tools: null,
    addGenerationPrompt: true,
    variables: new Map(Object.entries(variables)),
  });
}

function failure(source: string): unknown {
  try {
    return render(source);
  } catch (error) {
    return error;
  }
}

describe("compileChatTemplate()", () => {
  test.each([
    ["\n\n{% if x %}", "line 3: the tag is not closed, expected 'elif' or 'else' or 'endif'"],
    ["a\n{{ 1 + }}", "line 2: unexpected the variable end, expected an expression"],
    ["{% nope %}", "line 1: unknown or unsupported tag 'nope'"],
    ["{% include 'x' %}", "line 1: unknown or unsupported tag 'include'"],
    ["{{ 1|nope }}", "line 1: no filter named 'nope'"],
    ["{{ 1 is nope }}", "line 1: no test named 'nope'"],
    ["{{ (1] }}", "line 1: unexpected ']', expected ')'"],
    ["{# never ends", "line 1: Missing end of comment tag"],
    ["{% break %}", "line 1: 'break' outside of a loop"],
    ["{% set true = 1 %}", "line 1: cannot assign to a constant"],
    ["{{ 'a' ? }}", 'line 1: unexpected character "?"'],
  ])("refuses %j", (source, problem) => {
    expect(failure(source)).toBeInstanceOf(UsageError);
    expect(failure(source)).toHaveProperty(
      "message",
      `Cannot compile the chat template: ${problem}`,
    );
  });

  test("counts lines that white-space control removed", () => {
    expect(failure("a\n \n{%- set x = 1 %}\n\n{{ 1|nope }}")).toHaveProperty(
      "message",
      "Cannot compile the chat template: line 5: no filter named 'nope'",
    );
  });
});

describe("render()", () => {
  test("gives the template its messages, tools, prompt flag, documents and variables", () => {
    expect(
      render(
        "{{ messages|length }} {{ tools }} {{ add_generation_prompt }} {{ documents }} {{ x }}",
        {
          x: 2,
        },
      ),
    ).toBe("2 None True None 2.0");
    expect(render("{{ documents }}", { documents: "given" })).toBe("given");
  });

  test("throws the message of `raise_exception()`", () => {
    const error = failure("{{ raise_exception('No ' ~ messages[0].role) }}");
    expect(error).toBeInstanceOf(TemplateError);
    expect(error).toMatchObject({ kind: "TemplateError", message: "No user" });
  });

  test("throws a TemplateError if a macro calls itself forever", () => {
    expect(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")).toMatchObject({
      name: "TemplateError",
      kind: "RecursionError",
    });
  });

  test("keeps integers, floats and the order of keys apart from JavaScript's", () => {
    const args = parsePythonJson('{"10": 2.0, "2": 12345678901234567890, "a": -0.0, "b": 1e-7}');
    expect(render("{{ args|tojson }} {{ args }}", { args })).toBe(
      '{"10": 2.0, "2": 12345678901234567890, "a": -0.0, "b": 1e-07} ' +
        "{'10': 2.0, '2': 12345678901234567890, 'a': -0.0, 'b': 1e-07}",
    );
  });

  test("takes the time for `strftime_now` from its input", () => {
    const template = compileChatTemplate("{{ strftime_now('%d %b %Y') }}");
    const input = { messages, tools: null, addGenerationPrompt: false, variables: new Map() };
    expect(template.render({ ...input, now: new Date(2024, 1, 29) })).toBe("29 Feb 2024");
    expect(template.render({ ...input, now: new Date(1999, 11, 31) })).toBe("31 Dec 1999");
  });

  test("changes neither its input nor the template", () => {
    const source =
      "{% set ns = namespace(n=messages|length, seen=[]) %}{% for m in messages %}" +
      "{% set ns.n = ns.n + 1 %}{% set ns.seen = ns.seen + [m.role] %}{% endfor %}" +
      "{{ ns.n }}{{ ns.seen }}{{ messages|reverse|map(attribute='role')|join }}";
    const template = compileChatTemplate(source);
    const variables: PyDict = new Map([["d", new Map([["a", 1n]])]]);
    const input = { messages, tools: null, addGenerationPrompt: false, variables };
    const before = structuredClone(input);
    const first = template.render(input);
    expect(first).toBe("4['user', 'assistant']assistantuser");
    expect(template.render(input)).toBe(first);
    expect(input).toEqual(before);
  });

  test("refuses to print values that Python prints with a memory address", () => {
    expect(failure("{{ messages|map(attribute='role') }}")).toMatchObject({
      kind: "TemplateRuntimeError",
      message: "Cannot print a value of type generator: Python would print its memory address",
    });
  });
});
