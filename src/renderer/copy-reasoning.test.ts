import { describe, expect, test } from "vitest";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import type { PlainJson, PyDict } from "../../packages/python-values/src/value.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { bindTemplate } from "./bound-template.ts";
import { copyReasoning } from "./copy-reasoning.ts";
import { copiesReasoning } from "./transformers-version.ts";

const dict = (value: PlainJson): PyDict => toPyValue(value) as PyDict;

describe("copyReasoning()", () => {
  // Recorded from `_alias_reasoning_fields()` of transformers 5.23.0.
  test.each([
    [
      { role: "user", content: "x" },
      { role: "user", content: "x" },
    ],
    [{ reasoning_content: "a" }, { thinking: "a", reasoning_content: "a" }],
    [{ thinking: "b" }, { thinking: "b", reasoning_content: "b" }],
    [
      { role: "assistant", reasoning: "c" },
      { thinking: "c", role: "assistant", reasoning: "c", reasoning_content: "c" },
    ],
    [
      { thinking: "b", reasoning_content: "a" },
      { thinking: "b", reasoning_content: "a" },
    ],
    [
      { thinking: null, reasoning: "c" },
      { thinking: null, reasoning: "c", reasoning_content: "c" },
    ],
    [
      { reasoning_content: null, thinking: "", reasoning: "c" },
      { thinking: "", reasoning_content: "", reasoning: "c" },
    ],
    [{ reasoning_content: null }, { reasoning_content: null }],
  ])("%j becomes %j", (message, expected) => {
    const [copied] = copyReasoning([dict(message)]);
    expect([...(copied ?? [])]).toEqual([...dict(expected)]);
  });

  test("does not change conversations without reasoning", () => {
    const messages = [dict({ role: "user", content: "x" })];
    expect(copyReasoning(messages)).toBe(messages);
  });
});

describe("bindTemplate()", () => {
  const source = "{{ messages[0].thinking is defined }}";
  const messages = [dict({ role: "assistant", reasoning_content: "a" })];
  const show = (transformers?: string): string =>
    bindTemplate(compileChatTemplate(source), new Map(), new Date(0), transformers)
      .with(new Map())
      .render({ messages, tools: null, addGenerationPrompt: false });

  test("shows reasoning under the names that the release of transformers gives it", () => {
    expect([show(), show("5.21.0"), show("5.20")]).toEqual(["True", "True", "False"]);
  });

  test("refuses an invalid release", () => {
    expect(() => show("newest")).toThrow(
      "Cannot render as transformers newest: expected a release such as 5.23",
    );
  });
});

test.each([
  ["4.57.1", false],
  ["5.3", false],
  ["5.21.0rc1", true],
  ["5.100", true],
  ["6.0", true],
])("copiesReasoning(%s) is %s", (version, copies) => {
  expect(copiesReasoning(version)).toBe(copies);
});
