import { describe, expect, test } from "vitest";
import { toolFromOpenAi } from "../message.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { createToolCallingAgent } from "./tool-calling-agent.ts";
import { instructTemplate, toolUsePolicies, type ToolUsePolicy } from "./tool-use-policy.ts";

const tools = ["get_order", "cancel_order"].map((name) =>
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: {
        name,
        parameters: { type: "object", properties: { order_id: { type: "string" } } },
      },
    }),
    name,
  ),
);

const agent = createToolCallingAgent({
  parser: findToolCallParser("qwen25"),
  toolUsePolicy: toolUsePolicies.many,
});

function read(
  text: string,
  {
    finish = "stop",
    toolUsePolicy = toolUsePolicies.many,
    unknownTools = "refuse",
    known = tools,
  }: {
    finish?: "stop" | "length";
    toolUsePolicy?: ToolUsePolicy;
    unknownTools?: "refuse" | "perform";
    known?: typeof tools;
  } = {},
) {
  const parser = findToolCallParser("qwen25");
  return createToolCallingAgent({ parser, toolUsePolicy, unknownTools }).read({
    text,
    tools: known,
    turnIndex: 3,
    finish,
    reasoningOpened: false,
  });
}

function call(json: string): string {
  return `<tool_call>\n${json}\n</tool_call>`;
}

describe("createToolCallingAgent()", () => {
  test("sends a turn without a call to the user unchanged", () => {
    expect(read(" Hello!\n").intents).toEqual([
      { type: "act", callId: "t0003c000", action: { type: "say", content: " Hello!\n" } },
    ]);
  });

  test("executes the calls of a turn in order, with integers and floats kept apart", () => {
    const text = `Let me see.\n${call('{"name": "get_order", "arguments": {"order_id": "#W1", "n": 1, "x": 1.0}}')}\n${call('{"name": "cancel_order", "arguments": {"order_id": "#W1"}}')}`;
    const { intents, message, attemptCounts } = read(text);
    expect(intents).toEqual([
      {
        type: "act",
        callId: "t0003c000",
        action: {
          type: "call",
          name: "get_order",
          arguments: new Map<string, unknown>([
            ["order_id", "#W1"],
            ["n", 1n],
            ["x", 1],
          ]),
        },
      },
      {
        type: "act",
        callId: "t0003c001",
        action: { type: "call", name: "cancel_order", arguments: new Map([["order_id", "#W1"]]) },
      },
    ]);
    expect(message).toEqual({
      role: "assistant",
      content: "Let me see.",
      toolCalls: [
        {
          id: "t0003c000",
          name: "get_order",
          argumentsText: '{"order_id": "#W1", "n": 1, "x": 1.0}',
        },
        { id: "t0003c001", name: "cancel_order", argumentsText: '{"order_id": "#W1"}' },
      ],
    });
    expect(attemptCounts).toEqual({ ok: 2 });
  });

  test.each([
    [
      '{"name": "get_order", "arguments": {"order_id": }}',
      "invalid-json",
      "Error: the tool call is not valid JSON",
    ],
    ['{"arguments": {}}', "missing-name", "Error: the tool call has no name"],
    [
      '{"name": "refund", "arguments": {}}',
      "unknown-tool",
      'Error: unknown tool "refund", the available tools are: get_order, cancel_order',
    ],
    [
      '{"name": "get_order", "arguments": [1]}',
      "non-object-arguments",
      "Error: the arguments of the tool call must be a JSON object",
    ],
  ])("returns the error of %s to the model", (json, status, observation) => {
    const [intent] = read(call(json)).intents;
    expect(intent).toMatchObject({ type: "refuse", callId: "t0003c000", status, observation });
  });

  test("says of an unknown tool that there are none", () => {
    const [intent] = read(call('{"name": "refund", "arguments": {}}'), { known: [] }).intents;
    expect(intent).toMatchObject({
      observation: 'Error: unknown tool "refund", there are no tools',
    });
  });

  test("answers a valid and an invalid call separately", () => {
    const text = `${call("{bad}")}\n${call('{"name": "get_order", "arguments": {"order_id": "#W1"}}')}`;
    expect(read(text).intents.map((intent) => intent.type)).toEqual(["refuse", "act"]);
  });

  test("executes no call of a turn that was cut by length", () => {
    const good = call('{"name": "get_order", "arguments": {"order_id": "#W1"}}');
    expect(read(good, { finish: "length" }).intents).toMatchObject([
      {
        type: "refuse",
        status: "truncated-by-length",
        observation: "Error: the tool call was cut off",
      },
    ]);
  });

  test("with `one`, executes the first call and refuses the others", () => {
    const good = call('{"name": "get_order", "arguments": {"order_id": "#W1"}}');
    const toolUsePolicy = toolUsePolicies.one;
    expect(read(`${good}\n${good}`, { toolUsePolicy }).intents).toMatchObject([
      { type: "act", callId: "t0003c000" },
      { type: "refuse", callId: "t0003c001", status: "extra-call" },
    ]);
  });

  test("a further call that is malformed is refused as such", () => {
    const text = `${call("{bad}")}\n${call("{bad}")}`;
    expect(read(text, { toolUsePolicy: toolUsePolicies.one }).intents).toMatchObject([
      { type: "refuse", status: "invalid-json" },
      {
        type: "refuse",
        status: "invalid-json",
        observation: "Error: not executed, only one tool call is allowed in a turn",
      },
    ]);
  });

  test("with `first`, removes the other calls from the conversation", () => {
    const first = call('{"name": "get_order", "arguments": {"order_id": "#W1"}}');
    const second = call('{"name": "cancel_order", "arguments": {"order_id": "#W1"}}');
    const toolUsePolicy = toolUsePolicies.first;
    expect(read(`Wait.\n${first}\n${second}`, { toolUsePolicy })).toMatchObject({
      message: { content: "Wait.", toolCalls: [{ id: "t0003c000", name: "get_order" }] },
      intents: [
        { type: "act", callId: "t0003c000", action: { name: "get_order" } },
        { type: "ignore", callId: "t0003c001", name: "cancel_order" },
      ],
      attemptCounts: { ok: 2 },
    });
  });

  test("passes calls of unknown tools to the environment if `unknownTools` is `perform`", () => {
    const unknown = call('{"name": "respond", "arguments": {"content": "Hi"}}');
    expect(read(unknown, { unknownTools: "perform" })).toMatchObject({
      message: { toolCalls: [{ name: "respond", argumentsText: '{"content": "Hi"}' }] },
      intents: [
        {
          type: "act",
          action: { type: "call", name: "respond", arguments: new Map([["content", "Hi"]]) },
        },
      ],
      attemptCounts: { "unknown-tool": 1 },
    });
    expect(
      read(call('{"name": "respond", "arguments": [1]}'), { unknownTools: "perform" }).intents,
    ).toMatchObject([{ type: "refuse", status: "unknown-tool" }]);
    expect(read(unknown, { unknownTools: "perform", finish: "length" }).intents).toMatchObject([
      { type: "refuse", status: "truncated-by-length" },
    ]);
  });

  test("converts tool results and user lines to messages of their roles", () => {
    expect(
      agent.observe([
        { callId: "t0000c000", name: "get_order", from: "tool", text: "pending" },
        { callId: "t0001c000", name: "user", from: "user", text: "thanks" },
      ]),
    ).toEqual([
      { role: "tool", content: "pending", toolCallId: "t0000c000", name: "get_order" },
      { role: "user", content: "thanks" },
    ]);
  });
});

describe("tool-use policies", () => {
  const opening = (name: keyof typeof toolUsePolicies) =>
    createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies[name],
    }).open({ policyText: "Policy.", tools, firstUserText: "Hi", seed: 0, taskIndex: 0 })
      .messages[0]!.content;

  test("put the instruction in the system message, in the template, or omit it", () => {
    expect(opening("many")).toBe("Policy.");
    expect(opening("one")).toContain("Policy.\n\nMake at most one tool call in each turn.");
    expect(opening("one-in-template")).toBe("Policy.");
    const sentence = "You may call one or more functions to assist with the user query.";
    expect(instructTemplate(`{{ '${sentence}' }}`, toolUsePolicies["one-in-template"])).toContain(
      "{{ 'Make at most one tool call in each turn.",
    );
  });

  test("throw if the template lacks the sentence for the instruction", () => {
    expect(() => instructTemplate("{{ messages }}", toolUsePolicies["one-in-template"])).toThrow(
      'Cannot place the tool-use policy "one-in-template"',
    );
  });
});
