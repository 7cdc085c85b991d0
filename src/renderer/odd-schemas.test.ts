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

  test("renders a parameter without a description", () => {
    const schema = '{"properties": {"b": {"type": "string"}, "c": {"description": "A letter"}}}';
    expect(show(described, schema)).toBe("tool0(a: A letter) tool1(b: c: A letter) Go");
  });

  test("names the tool that it cannot render", () => {
    expect(() => show(described, '{"properties": []}')).toThrow(
      "Cannot render the conversation with the chat template of a test: " +
        "'list object' has no attribute 'items', because of tool tool1",
    );
  });

  test.each([0, 1, 2, 3, 4, 5, 6])("names the first of several tools, the one at %i", (place) => {
    const schemas = Array.from({ length: 7 }, (_, index) =>
      index < place ? described : '{"properties": []}',
    );
    expect(() => show(...schemas)).toThrow(`because of tool tool${place}`);
  });
});

describe("a template that reads each tool's description", () => {
  const reading =
    "{% for t in tools or [] %}{{ t.function.name + ': ' + t.function.description }} {{ t.function.parameters|tojson }}\n{% endfor %}";

  test("renders a tool without one, and changes no other member", () => {
    const parameters = '{"type": "object", "properties": {"b": {"type": "string"}}}';
    const tools = ["", ', "description": null', ', "description": "Opens"'].map((given, index) =>
      parsePythonJson(
        `{"type": "function", "function": {"name": "tool${index}", "parameters": ${parameters}${given}}}`,
      ),
    );
    const template = bindTemplate(compileChatTemplate(reading), new Map(), new Date(0));
    const conversation = { messages: [], tools, addGenerationPrompt: true };
    expect(template.render(conversation).split("\n")).toEqual([
      `tool0:  ${parameters}`,
      `tool1:  ${parameters}`,
      `tool2: Opens ${parameters}`,
      "",
    ]);
  });

  test("tools that a template accepts stay as they are", () => {
    const whole = "{{ tools|tojson }}";
    const tool = '{"type": "function", "function": {"name": "bare", "parameters": {}}}';
    const template = bindTemplate(compileChatTemplate(whole), new Map(), new Date(0));
    const conversation = {
      messages: [],
      tools: [parsePythonJson(tool)],
      addGenerationPrompt: true,
    };
    expect(template.render(conversation)).toBe(`[${tool}]`);
  });
});
