import { describe, expect, test } from "vitest";
import { toolFromOpenAi } from "../../tool-definition.ts";
import { toPyValue } from "../../../../python-values/src/index.ts";
import { findReasoningParser } from "../../reasoning/registry.ts";
import { openai, readHarmonyTurn } from "./openai.ts";

const turn =
  "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary<|message|>Hm.<|end|>" +
  '<|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"a":"é"}<|call|>';

describe("readHarmonyTurn()", () => {
  test("separates reasoning, text and calls", () => {
    expect(readHarmonyTurn(turn)).toEqual({
      reasoning: "Look.",
      content: "Hm.",
      calls: [{ name: "look", argumentsText: '{"a": "\\u00e9"}' }],
    });
  });

  test.each<[string, string, Partial<ReturnType<typeof readHarmonyTurn>>]>([
    [
      "a turn that ends within a header is text",
      "<|channel|>final",
      { content: "<|channel|>final" },
    ],
    ["a message needs no end", "<|channel|>final<|message|>Hi", { content: "Hi" }],
    [
      "messages of others are left out",
      "<|channel|>final<|message|>a<|end|><|start|>user<|message|>b",
      { content: "a" },
    ],
    [
      "what stands between messages is skipped",
      "<|channel|>final<|message|>a<|end|>x<|start|>assistant<|channel|>final<|message|>b",
      { content: "a\nb" },
    ],
    [
      "a message that opens with a role that was said already is none",
      `<|start|>assistant${turn}`,
      { content: "Hm." },
    ],
    ["a header that is too long is none", "a b c<|message|>x", {}],
    [
      "tools of OpenAI's own are no functions",
      "<|channel|>analysis to=python code<|message|>x",
      { reasoning: "x" },
    ],
    [
      "a lone word is a recipient",
      "look<|message|>x",
      { calls: [{ name: "look", argumentsText: "x" }] },
    ],
    [
      "what is no JSON by its type is left as it is",
      "to=look code<|message|>[1,2]",
      { calls: [{ name: "look", argumentsText: "[1,2]" }] },
    ],
    [
      "what is JSON is written as Python writes it",
      "to=look<|message|>[1,2]",
      { calls: [{ name: "look", argumentsText: "[1, 2]" }] },
    ],
  ])("%s: %j", (_, text, expected) => {
    const nothing = { reasoning: "", content: "", calls: [] };
    const found = readHarmonyTurn(text);
    if (text.startsWith("<|start|>")) expect(found).toMatchObject(expected);
    else expect(found).toEqual({ ...nothing, ...expected });
  });
});

describe("openai", () => {
  const tools = [
    toolFromOpenAi(
      toPyValue({ type: "function", function: { name: "look", parameters: { type: "object" } } }),
      "look",
    ),
  ];

  test("attempts are the messages to functions, with any end", () => {
    for (const end of ["<|call|>", "<|end|>", ""]) {
      const text = turn.replace("<|call|>", end);
      const start = text.lastIndexOf("<|start|>");
      const read = openai.parse(text, { tools, dialect: "vllm" }).attempts;
      expect(read).toMatchObject([{ status: "ok", name: "look", span: [start, text.length] }]);
    }
  });

  test("reasoning is the analysis channel; a tool-call parser gets the complete turn", () => {
    const parser = findReasoningParser("openai_gptoss");
    const options = { dialect: "vllm", toolCallParserActive: true } as const;
    expect(parser.parse(turn, options)).toEqual({ reasoning: "Look.", normalText: turn });
    expect(parser.parse(turn, { dialect: "vllm" })).toEqual({
      reasoning: "Look.",
      normalText: "Hm.",
    });
  });
});
