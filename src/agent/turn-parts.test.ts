import { describe, expect, test } from "vitest";
import { toolFromOpenAi } from "../message.ts";
import { findReasoningParser } from "../../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { createToolCallingAgent, type ToolCallingOptions } from "./tool-calling-agent.ts";
import { toolUsePolicies } from "./tool-use-policy.ts";

const tools = [
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: { name: "get_order", parameters: { type: "object" } },
    }),
    "get_order",
  ),
];

/** Reads a turn as the agent of a model family does. */
function read(
  family: { readonly parser: string; readonly reasoningParser?: string },
  turn: {
    readonly text: string;
    readonly stopText?: string;
    readonly opened?: boolean;
    readonly finish?: "stop" | "length";
  },
  more: Partial<ToolCallingOptions> = {},
) {
  const reasoning =
    family.reasoningParser === undefined ? undefined : findReasoningParser(family.reasoningParser);
  const { opened = false, finish = "stop", ...said } = turn;
  return createToolCallingAgent({
    parser: findToolCallParser(family.parser),
    toolUsePolicy: toolUsePolicies.many,
    ...(reasoning !== undefined && {
      splitReasoning: (text, { opened: forceReasoning }) => {
        const options = { forceReasoning, toolCallParserActive: true };
        const { reasoning: thought, normalText } = reasoning.parse(text, options);
        return { reasoning: thought, rest: normalText };
      },
    }),
    ...(reasoning?.closer !== undefined && {
      reasoningMarkup: { opener: reasoning.markers[0]!, closer: reasoning.closer },
    }),
    ...more,
  }).read({ ...said, tools, turnIndex: 2, finish, reasoningOpened: opened });
}

const qwen3 = { parser: "qwen25", reasoningParser: "qwen3" };
const call = '<tool_call>\n{"name": "get_order", "arguments": {}}\n</tool_call>';

describe("the form of a turn", () => {
  test("records each attempt with its range in the complete text", () => {
    const text = `<think>\nLook.\n</think>\n\nWait.\n${call}`;
    expect(read(qwen3, { text }).form).toEqual({
      attempts: [{ status: "ok", name: "get_order", span: [text.indexOf(call), text.length] }],
      leakedMarkup: false,
      thinkingMalformed: false,
    });
  });

  test("counts drafts in the reasoning, which are not executed", () => {
    const text = `<think>\nLike ${call}?\n</think>\n\n${call}`;
    const { form, intents, attemptCounts } = read(qwen3, { text });
    expect(form?.attempts.map(({ status, span }) => [status, text.slice(...span)])).toEqual([
      ["in-reasoning", call],
      ["ok", call],
    ]);
    expect(form?.attempts[0]?.span[0]).toBe(text.indexOf(call));
    expect(intents).toMatchObject([{ type: "act", action: { type: "call", name: "get_order" } }]);
    expect(attemptCounts).toEqual({ "in-reasoning": 1, ok: 1 });
  });

  test("detects markup in the message", () => {
    const mention = "I would use <tool_call> for that.";
    expect(read(qwen3, { text: mention })).toMatchObject({
      message: { content: mention },
      form: { attempts: [{ status: "marker-only", span: [12, 23] }], leakedMarkup: true },
    });
    expect(read(qwen3, { text: "Done.</think>" }).form).toEqual({
      attempts: [],
      leakedMarkup: true,
      thinkingMalformed: true,
    });
  });

  test("detects reasoning without an end", () => {
    expect(read(qwen3, { text: "Hm", opened: true })).toMatchObject({
      reasoning: "Hm",
      form: { thinkingMalformed: true },
    });
    expect(read(qwen3, { text: "Hm", opened: true, finish: "length" })).toMatchObject({
      form: { thinkingMalformed: false },
    });
  });
});

describe("a turn that consists of a call in its reasoning", () => {
  test("returns an error to the policy instead of an empty message to the user", () => {
    const text = `<think>\n${call}\n</think>\n\n`;
    expect(read(qwen3, { text })).toMatchObject({
      message: {
        role: "assistant",
        content: "",
        toolCalls: [{ id: "t0002c000", name: "get_order" }],
      },
      intents: [
        {
          type: "refuse",
          callId: "t0002c000",
          name: "get_order",
          status: "in-reasoning",
          observation: "Error: not executed, the tool call stands inside the reasoning",
        },
      ],
    });
  });

  test("is sent to the user if text follows", () => {
    const text = `<think>\n${call}\n</think>\n\nHello!`;
    expect(read(qwen3, { text }).intents).toEqual([
      { type: "act", callId: "t0002c000", action: { type: "say", content: "Hello!" } },
    ]);
  });
});

describe("gpt-oss", () => {
  const family = { parser: "gpt-oss", reasoningParser: "gpt-oss" };
  const text =
    "<|channel|>analysis<|message|>Look.<|end|><|start|>assistant<|channel|>commentary " +
    "to=functions.get_order <|constrain|>json<|message|>{}";

  test("closes a call with the token that ends the turn", () => {
    const { intents, form, reasoning } = read(family, { text, stopText: "<|call|>" });
    expect(intents).toMatchObject([{ type: "act", action: { name: "get_order" } }]);
    expect(reasoning).toBe("Look.");
    expect(form?.attempts).toMatchObject([
      { status: "ok", span: [text.indexOf("<|start|>"), text.length + "<|call|>".length] },
    ]);
  });

  test("does not close it with another token", () => {
    const { intents, form } = read(family, { text, stopText: "<|return|>" });
    expect(intents).toMatchObject([
      {
        type: "refuse",
        status: "unclosed-block",
        observation: "Error: the tool call is not closed",
      },
    ]);
    expect(form?.attempts).toMatchObject([
      { status: "unclosed-block", span: [text.indexOf("<|start|>"), text.length] },
    ]);
  });
});

describe("the ids of calls", () => {
  test("are those that the model wrote, if its format has ids", () => {
    const kimi =
      "<|tool_calls_section_begin|>" +
      ["functions.get_order:0", "functions.get_order:1"]
        .map((id) => `<|tool_call_begin|>${id}<|tool_call_argument_begin|>{}<|tool_call_end|>`)
        .join("") +
      "<|tool_calls_section_end|>";
    const ids = ["functions.get_order:0", "functions.get_order:1"];
    const { message, intents } = read({ parser: "kimi_k2" }, { text: kimi });
    expect(message).toMatchObject({ toolCalls: ids.map((id) => ({ id })) });
    expect(intents.map(({ callId }) => callId)).toEqual(ids);
    const mistral = '[TOOL_CALLS] [{"name": "get_order", "arguments": {}, "id": "a1B2c3D4e"}]';
    expect(read({ parser: "mistral" }, { text: mistral }).intents[0]?.callId).toBe("a1B2c3D4e");
  });

  test("are generated if two are equal or one is invalid", () => {
    const entry = (id: string) => `{"name": "get_order", "arguments": {}, "id": ${id}}`;
    const text = `[TOOL_CALLS] [${['"a1B2c3D4e"', '"a1B2c3D4e"', '"short"', "7"].map(entry).join(", ")}]`;
    expect(read({ parser: "mistral" }, { text }).intents.map(({ callId }) => callId)).toEqual([
      "a1B2c3D4e",
      "t0002c001",
      "t0002c002",
      "t0002c003",
    ]);
  });
});

describe("a template that accepts one result a turn", () => {
  const agent = createToolCallingAgent({
    parser: findToolCallParser("qwen25"),
    toolUsePolicy: toolUsePolicies.many,
    parallelResults: false,
  });
  const turn = { text: `${call}\n${call}`, tools, turnIndex: 2, reasoningOpened: false } as const;

  test("executes the first call, and adds the errors of the others to its result", () => {
    const { message, intents } = agent.read({ ...turn, finish: "stop" });
    expect(message).toMatchObject({ toolCalls: [{ id: "t0002c000" }] });
    expect(intents).toMatchObject([
      { type: "act", callId: "t0002c000" },
      { type: "refuse", callId: "t0002c001", status: "extra-call" },
    ]);
    expect(
      agent.observe([
        { callId: "t0002c000", name: "get_order", from: "tool", text: "pending" },
        { callId: "t0002c001", name: "get_order", from: "tool", text: "Error: not executed" },
      ]),
    ).toEqual([
      {
        role: "tool",
        content: "pending\n\nError: not executed",
        toolCallId: "t0002c000",
        name: "get_order",
      },
    ]);
  });
});
