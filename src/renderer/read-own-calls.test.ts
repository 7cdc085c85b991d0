import { describe, expect, test } from "vitest";
import { sampleTemplates } from "./sample-templates.fixture.ts";
import { bindTemplate } from "./bound-template.ts";
import { compileChatTemplate } from "../../packages/chat-template/src/chat-template.ts";
import { readOwnCalls, type ReadingParsers } from "./read-own-calls.ts";

/** A template that writes a call in the given way. */
function templateOf(call: string, generationPrompt = "<|assistant|>"): string {
  return `{%- for m in messages %}{{ '<|' + m.role + '|>' }}
{%- if m.reasoning_content %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}
{{- m.content }}{% for c in m.tool_calls or [] %}${call}{% endfor %}{{ '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}${generationPrompt}{% endif %}`;
}

function read(source: string, parsers: Partial<ReadingParsers>) {
  return readOwnCalls(bindTemplate(compileChatTemplate(source), new Map(), new Date(0)), {
    parser: "qwen25",
    reasoningParser: undefined,
    stops: ["<|end|>"],
    ...parsers,
  });
}

const packed = "{{ '<tool_call>' + c.function|tojson + '</tool_call>' }}";
const spaced = "{{ '<tool_call>\\n' + c.function|tojson + '\\n</tool_call>' }}";

describe("readOwnCalls()", () => {
  test("reads the call that the template writes", () => {
    expect(read(templateOf(spaced), {})).toEqual({ type: "read" });
    expect(read(templateOf(packed), { parser: "hermes" })).toEqual({ type: "read" });
  });

  test("gives the reason if the parser does not read it", () => {
    expect(read(templateOf(packed), {})).toEqual({
      type: "misread",
      detail: "expected a line break after <tool_call> and before </tool_call>",
    });
    expect(read(templateOf(spaced), { parser: "glm45" })).toMatchObject({ type: "misread" });
    expect(read(templateOf(spaced), { parser: "kimi_k2" })).toEqual({
      type: "misread",
      detail: "it finds no call in it",
    });
  });

  test("lets the dialect decide", () => {
    const call = `{{ '[TOOL_CALLS]' + [c.function]|tojson }}`;
    expect(read(templateOf(call), { parser: "mistral", dialect: "sglang" })).toEqual({
      type: "misread",
      detail: "expected one space between [TOOL_CALLS] and the list",
    });
    expect(read(templateOf(call), { parser: "mistral", dialect: "vllm" })).toEqual({
      type: "read",
    });
  });

  test("reasons first if the prompt opens the reasoning", () => {
    const source = templateOf(spaced, "<|assistant|><think>");
    expect(read(source, { reasoningParser: "qwen3" })).toEqual({ type: "read" });
  });

  test("does not mind ids in the one form or the other", () => {
    const call =
      "<|tool_calls_section_begin|><|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>" +
      "{{ c.function.arguments|tojson }}<|tool_call_end|><|tool_calls_section_end|>";
    const source = templateOf(`${call}{{ c.function.name[:0] }}`);
    expect(read(source, { parser: "kimi_k2" })).toEqual({ type: "read" });
  });

  test("reports a template that shows no call", () => {
    expect(read(templateOf(""), {})).toEqual({ type: "not-shown" });
    expect(read(sampleTemplates.plain, {})).toEqual({ type: "not-shown" });
    expect(read("{{ raise_exception('No.') }}", {})).toEqual({ type: "not-shown" });
  });
});
