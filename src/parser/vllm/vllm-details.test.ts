import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../../message.ts";
import { toPyValue } from "../../python/value.ts";
import { findToolCallParser } from "../registry.ts";
import type { CompatResult } from "../tool-call-parser.ts";

const tools = toolsFromOpenAi(toPyValue([{ type: "function", function: { name: "f" } }]), "tools");

function readAsVllm(parser: string, text: string): CompatResult {
  return findToolCallParser(parser).parse(text, { tools, dialect: "vllm" }).compat;
}

describe("as vLLM reads it,", () => {
  test.each(["qwen3_coder", "glm47", "gemma4", "minimax-m2", "mimo"])(
    "a blank turn of %s has no content",
    (parser) => {
      expect(readAsVllm(parser, " \n").normalText).toBe("");
      expect(readAsVllm(parser, " a ").normalText).toBe(" a ");
    },
  );

  test("U+001C between key and value is no white space", () => {
    const text =
      "<tool_calls><tool_call>f<tool_sep><arg_key>a</arg_key>\u001c<arg_value>5</arg_value>" +
      "</tool_call></tool_calls>";
    expect(readAsVllm("hunyuan", text).calls).toEqual([
      { name: "f", argumentsText: "{}", toolIndex: 0 },
    ]);
    expect(findToolCallParser("hunyuan").parse(text, { tools }).compat.calls).toEqual([
      { name: "f", argumentsText: '{"a": "5"}', toolIndex: 0 },
    ]);
  });
});

describe("Kimi K2's ids, as vLLM reads them,", () => {
  const callOf = (id: string) =>
    `<|tool_calls_section_begin|><|tool_call_begin|>${id}<|tool_call_argument_begin|>{}` +
    "<|tool_call_end|><|tool_calls_section_end|>";

  test.each([
    ["functions.f:0", "f"],
    [" \n a.b:1:12 \t", "b"],
    ["  :5", " "],
    ["f:٣", "f"],
  ])("%j names %j", (id, name) => {
    expect(readAsVllm("kimi_k2", callOf(id)).calls).toEqual([
      { name, argumentsText: "{}", toolIndex: 0 },
    ]);
  });

  test.each(["f", "f:", ":5", "f:1 2", "", "f:1x"])("%j is none", (id) => {
    expect(readAsVllm("kimi_k2", callOf(id)).calls).toEqual([]);
  });
});
