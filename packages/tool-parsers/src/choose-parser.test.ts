import { describe, expect, test } from "vitest";
import { chooseParser } from "./choose-parser.ts";
import { findReasoningParser } from "./reasoning/registry.ts";
import { findToolCallParser } from "./registry.ts";

describe("chooseParser()", () => {
  test.each([
    [
      '{{ \'<tool_call>\\n{"name": "\' + name }}<think>',
      { toolCallParser: "qwen25", reasoningParser: "qwen3" },
    ],
    ["<tool_call>\n<function=f>\n<parameter=a>", { toolCallParser: "qwen3_coder" }],
    [
      "[gMASK]<sop><think><tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>",
      { toolCallParser: "glm45", reasoningParser: "glm45" },
    ],
    [
      "[gMASK]<sop><think><tool_call>{function-name}<arg_key>{arg-key-1}</arg_key>",
      { toolCallParser: "glm47", reasoningParser: "glm45" },
    ],
    ["<seed:tool_call><function=f><parameter=a>", { toolCallParser: "seed_oss" }],
    [
      "<|channel|>analysis<|message|><|channel|>analysis <|constrain|>xml<|message|>",
      { toolCallParser: "beam", reasoningParser: "beam" },
    ],
    ["<dots_function_call>", { toolCallParser: "dots" }],
    ["<｜GCML｜tool_calls>", { toolCallParser: "gigachat35" }],
    ["<｜DSML｜ calls>", { toolCallParser: "deepseekv41" }],
    ["<longcat_tool_call>", { toolCallParser: "longcat" }],
    ["<|plamo:begin_tool_requests:plamo|>", { toolCallParser: "plamo3" }],
    ["<start_function_call>", { toolCallParser: "functiongemma" }],
    ["<iquest_tool_call><think>", { toolCallParser: "iquest_q1", reasoningParser: "iquest_q1" }],
    ["<ifm|tool_call><ifm|think>", { toolCallParser: "k2_horizon", reasoningParser: "k2_horizon" }],
    ["{{ messages }}", {}],
  ])("%j gives %j", (template, choice) => {
    expect(chooseParser(template)).toEqual(choice);
  });

  test("names vLLM's parser for gpt-oss", () => {
    const template = "<|channel|>analysis<|message|><|channel|>commentary";
    const choice = { toolCallParser: "openai", reasoningParser: "gpt-oss" };
    expect(chooseParser(template, "vllm")).toEqual(choice);
    expect(chooseParser(template)).toEqual({ ...choice, toolCallParser: "gpt-oss" });
  });

  test("names vLLM's parser for Qwen's format", () => {
    const template = "{{ '<tool_call>\\n{' }}";
    expect(chooseParser(template)).toEqual({ toolCallParser: "qwen25" });
    expect(chooseParser(template, "vllm")).toEqual({ toolCallParser: "hermes" });
  });

  test("distinguishes Cohere's formats as vLLM does", () => {
    const older = "<|START_THINKING|><|START_ACTION|><|START_RESPONSE|>";
    const newer = `${older}<|START_TEXT|>`;
    const command3 = { toolCallParser: "cohere_command3", reasoningParser: "cohere_command3" };
    const command4 = { toolCallParser: "cohere_command4", reasoningParser: "cohere_command4" };
    expect(chooseParser(older, "vllm")).toEqual(command3);
    expect(chooseParser(newer, "vllm")).toEqual(command4);
    expect(chooseParser(older)).toEqual({ toolCallParser: "cohere_command4" });
    expect(chooseParser(newer)).toEqual(command4);
  });

  test("returns known names", () => {
    const templates = [
      "[TOOL_CALLS][THINK]",
      "<minimax:tool_call><think>",
      "<|tools_prefix|><|inner_prefix|>",
    ];
    for (const template of templates) {
      const { toolCallParser = "", reasoningParser = "" } = chooseParser(template);
      expect(findToolCallParser(toolCallParser).name).toBe(toolCallParser);
      expect(findReasoningParser(reasoningParser).name).toBe(reasoningParser);
    }
  });
});
