import { describe, expect, test } from "vitest";
import { UsageError } from "../../../python-values/src/support/index.ts";
import type { TemplateLimits } from "./budget.ts";
import { compileChatTemplate } from "../chat-template.ts";
import { TemplateError } from "../template-error.ts";

function render(source: string, limits?: Partial<TemplateLimits>): string {
  return compileChatTemplate(source, limits).render({
    messages: [],
    tools: null,
    addGenerationPrompt: false,
    variables: new Map([["text", "x".repeat(6400)]]),
  });
}

function problemOf(source: string, limits?: Partial<TemplateLimits>): unknown {
  try {
    return render(source, limits);
  } catch (error) {
    return error instanceof TemplateError ? `${error.kind}: ${error.message}` : error;
  }
}

const steps = (count: number): string => `LimitError: the template takes more than ${count} steps`;

describe("a rendering is limited", () => {
  test("to 20 million steps: loops within loops end, and the line is named", () => {
    const source =
      "a\n{% for i in range(100000) %}\n{% for j in range(100000) %}{% endfor %}{% endfor %}";
    expect(problemOf(source)).toBe(
      "LimitError: line 3: the template takes more than 20000000 steps",
    );
  });

  test.each([
    ["items that a filter goes through", "{{ range(100000)|list|length }}", 1000],
    ["items that a condition leaves out", "{% for i in range(2000) if false %}{% endfor %}", 1000],
    ["long texts that filters handle", "{{ text|upper|lower|trim|upper|lower|trim }}", 1000],
    ["long texts that methods handle", "{{ text.upper().lower().strip().upper().lower() }}", 400],
    ["long texts that are looked through", "{{ 'a' in text or 'b' in text or 'c' in text }}", 200],
    [
      "lists that are joined",
      "{% set a = [1] * 500 %}{% set b = a + a %}{% set c = b + b %}",
      1000,
    ],
    ["texts that are repeated", "{{ ('ab' * 10000)|length }}", 1000],
    [
      "statements of a macro",
      "{% macro m() %}{% set a = 1 %}{% set b = 1 %}{% endmacro %}{{ m() }}{{ m() }}",
      8,
    ],
  ])("%s are steps", (_what, source, count) => {
    expect(problemOf(source, { steps: count })).toContain(
      steps(count).slice("LimitError: ".length),
    );
    expect(problemOf(source, { steps: 200_000 })).toBeTypeOf("string");
    expect(problemOf(source, { steps: 200_000 })).not.toContain("LimitError");
  });

  test.each([
    ["tojson", "{{ n.a|tojson }}"],
    ["printing", "{{ n.a }}"],
    ["==", "{{ n.a == n.b }}"],
    ["<", "{{ n.a < n.b }}"],
    ["in", "{{ n.a in [n.b] }}"],
    ["a key's hash", "{{ {n.a: 1} }}"],
  ])("in the items of %s over a value that contains each part twice", (_what, use) => {
    const grow = "{% for i in range(60) %}{% set n.a = (n.a, n.a) %}{% set n.b = (n.b, n.b) %}";
    const source = `{% set n = namespace(a=(1,), b=(1,)) %}${grow}{% endfor %}${use}`;
    expect(problemOf(source, { steps: 200_000 })).toContain("LimitError: line 1: the template");
  });

  test("in printed characters", () => {
    expect(problemOf("{{ text }}{{ text }}", { characters: 12_799 })).toBe(
      "LimitError: the template prints more than 12799 characters",
    );
    expect(render("{{ text }}{{ text }}", { characters: 12_800 })).toHaveLength(12_800);
  });

  test("in how deep macros and recursive loops go", () => {
    const macro = "{% macro m(n) %}{{ m(n - 1) if n > 0 else 'end' }}{% endmacro %}";
    const message =
      "RecursionError: maximum recursion depth exceeded: " +
      "macros or recursive loops nest more than 200 deep";
    expect(problemOf(`${macro}{{ m(199) }}`)).toBe("end");
    expect(problemOf(`${macro}{{ m(200) }}`)).toBe(message);
    const loop = "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}";
    expect(problemOf(loop)).toBe(message);
  });

  test("again each time", () => {
    const template = compileChatTemplate("{% for i in range(60) %}{% endfor %}", { steps: 200 });
    const input = { messages: [], tools: null, addGenerationPrompt: false, variables: new Map() };
    for (let time = 0; time < 10; time++) expect(template.render(input)).toBe("");
  });
});

describe("a template is limited in how deep it is nested", () => {
  test.each([
    ["brackets", `{{ ${"(".repeat(101)}1${")".repeat(101)} }}`],
    ["blocks", `${"{% if true %}".repeat(101)}${"{% endif %}".repeat(101)}`],
  ])("%s", (_what, source) => {
    expect(() => compileChatTemplate(source)).toThrow(
      "Cannot compile the chat template: line 1: nested too deeply, expected at most 100 levels",
    );
  });

  test("a hundred thousand brackets, signs or operators are an error of the template", () => {
    for (const part of ["(", "- ", "not ", "1 + "]) {
      expect(() => compileChatTemplate(`{{ ${part.repeat(100_000)}1 }}`)).toThrow(UsageError);
    }
  });
});
