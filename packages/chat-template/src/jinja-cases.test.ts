import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../python-values/src/support/index.ts";
import { parsePythonJson, type PyDict } from "../../python-values/src/index.ts";
import { compileChatTemplate } from "./chat-template.ts";
import { TemplateError } from "./template-error.ts";

/** The texts that Python's jinja2 renders, recorded by `jinja-cases.py`. */
const recorded = readFileSync(new URL("jinja-cases.json", import.meta.url), "utf8");

interface Case {
  readonly template: string;
  /** Python's text, or the exception's name and message. */
  readonly output?: string;
  readonly error?: string;
}

const { cases } = JSON.parse(recorded) as { cases: Record<string, readonly Case[]> };
const variables = (parsePythonJson(recorded) as PyDict).get("variables") as PyDict;

function outcome(template: string): Omit<Case, "template"> {
  try {
    const output = compileChatTemplate(template).render({
      messages: variables.get("messages") as readonly PyDict[],
      tools: null,
      addGenerationPrompt: false,
      variables,
      now: new Date(2026, 10, 21, 8, 0, 0),
    });
    return { output };
  } catch (error) {
    if (error instanceof TemplateError) return { error: `${error.kind}: ${error.message}` };
    if (error instanceof UsageError) return { error: "TemplateSyntaxError" };
    throw error;
  }
}

describe.each(Object.entries(cases))("%s", (_fact, templates) => {
  test.each(templates)("$template", ({ template, output, error }) => {
    const expected = error?.startsWith("TemplateSyntaxError") ? "TemplateSyntaxError" : error;
    expect(outcome(template)).toEqual(expected === undefined ? { output } : { error: expected });
  });
});
