import { describe, expect, test } from "vitest";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { bindTemplate } from "./bound-template.ts";
import { renderPrompt } from "./render-prompt.ts";

/** Reads the parameters of each tool without asking whether they exist, as Seed-OSS's and Command R+'s do. */
const source =
  "{% for t in tools or [] %}{{ t.function.name }}(" +
  "{% for name, schema in t.function.parameters.properties.items() %}{{ name + ': ' + schema.description }}{% endfor %}) " +
  "{% endfor %}{{ messages[0].content }}";

function show(...schemas: readonly string[]): string {
  const tools = schemas.map((schema, index) =>
    parsePythonJson(
      `{"type": "function", "function": {"name": "tool${index}", "parameters": ${schema}}}`,
    ),
  );
  const messages = [new Map<string, PyValue>([["content", "Go"]])];
  const template = bindTemplate(compileChatTemplate(source), new Map(), new Date(0));
  return renderPrompt(template, { messages, tools, addGenerationPrompt: true }, "a test");
}

const described = '{"type": "object", "properties": {"a": {"description": "A letter"}}}';

describe("a template that reads each tool's properties", () => {
  test("renders a tool without any", () => {
    expect(show(described, '{"type": "object"}', "{}")).toBe(
      "tool0(a: A letter) tool1() tool2() Go",
    );
  });

  test("names the tool that it cannot render", () => {
    expect(() => show(described, '{"properties": {"b": {}}}')).toThrow(
      "Cannot render the conversation with the chat template of a test: " +
        "'dict object' has no attribute 'description', because of tool tool1",
    );
  });

  test.each([0, 1, 2, 3, 4, 5, 6])("names the first of several tools, the one at %i", (place) => {
    const schemas = Array.from({ length: 7 }, (_, index) =>
      index < place ? described : '{"properties": {"b": {}}}',
    );
    expect(() => show(...schemas)).toThrow(`because of tool tool${place}`);
  });
});
