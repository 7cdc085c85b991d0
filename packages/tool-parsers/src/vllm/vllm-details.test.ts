import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../tool-definition.ts";
import { toPyValue } from "../../../python-values/src/index.ts";
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

  test("U+001C between key and value is not white space", () => {
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

  test.each(["f", "f:", ":5", "f:1 2", "", "f:1x"])("%j is not an id", (id) => {
    expect(readAsVllm("kimi_k2", callOf(id)).calls).toEqual([]);
  });
});

describe("since vLLM 0.33", () => {
  const schema = { type: "object", properties: { n: { type: "integer" }, x: { type: "number" } } };
  const typed = toolsFromOpenAi(
    toPyValue([{ type: "function", function: { name: "f", parameters: schema } }]),
    "tools",
  );
  const read = (parser: string, text: string, vocabulary: readonly string[] = []) => {
    const options = { tools: typed, dialect: "vllm", engineVersion: "0.33", vocabulary } as const;
    const { normalText, calls } = findToolCallParser(parser).parse(text, options).compat;
    return [normalText, ...calls.map(({ name, argumentsText }) => `${name} ${argumentsText}`)];
  };

  test("values get the types of the schema, and an integral number becomes an integer", () => {
    const call = (body: string) =>
      `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0` +
      `<|tool_call_argument_begin|>${body}<|tool_call_end|><|tool_calls_section_end|>`;
    expect(read("kimi_k2", call('{"x": 5.0}'))).toEqual(["", 'f {"x": 5}']);
    expect(read("kimi_k2", call('{"n": 5.0}'))).toEqual(["", 'f {"n": 5.0}']);
    expect(read("kimi_k2", call('{"n": "5"}'))).toEqual(["", 'f {"n": 5}']);
    expect(read("kimi_k2", call('{"n":5}'))).toEqual(["", 'f {"n":5}']);
  });

  test("the vocabulary decides if Mistral's calls are a list", () => {
    const list = '[TOOL_CALLS] [{"name": "f", "arguments": {"n": 5}}]';
    expect(read("mistral", list)).toEqual(["", 'f {"n": 5}']);
    expect(read("mistral", list, ["[TOOL_CALLS]"])).toEqual(["", 'f {"n": 5}']);
    const pair = '[TOOL_CALLS]f[ARGS]{"n": "5"} said after[TOOL_CALLS]f{}';
    expect(read("mistral", pair, ["[TOOL_CALLS]", "[ARGS]"])).toEqual(["", 'f {"n": 5}', "f {}"]);
    expect(read("mistral", "a[/THINK]b", ["[TOOL_CALLS]"])).toEqual(["a[/THINK]b"]);
    expect(read("mistral", "a[/THINK]b", ["[TOOL_CALLS]", "[ARGS]"])).toEqual(["ab"]);
  });

  test.each([
    ['a <|tool_call|> [{"name": "f", "arguments": {"n": "5"}}] b', ["a", 'f {"n": 5}']],
    ['<tool_call>[{"name": "f", "arguments": {"n": 1}}, {"name": "f"', ["", 'f {"n": 1}', "f {}"]],
    ["<tool_call><tool_call> no list", ["<tool_call> no list"]],
  ])("Granite 3 reads %j", (text, wanted) => {
    expect(read("granite", text)).toEqual(wanted);
  });
});
