import { describe, expect, test } from "vitest";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { ChatToolCall } from "../engine/chat/chat-turn.ts";
import { toolFromOpenAi } from "../message.ts";
import { createChatToolAgent, type ChatToolOptions } from "./chat-tool-agent.ts";
import { toolUsePolicies } from "./tool-use-policy.ts";

const tools = [
  toolFromOpenAi(
    parsePythonJson(
      '{"type": "function", "function": {"name": "lend", "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}}',
    ),
    "a tool",
  ),
];

function read(
  toolCalls: readonly ChatToolCall[],
  options: Partial<ChatToolOptions> & { content?: string; finish?: "stop" | "length" } = {},
) {
  const { content = "", finish = "stop", ...rules } = options;
  const agent = createChatToolAgent({ toolUsePolicy: toolUsePolicies.many, ...rules });
  return agent.readMessage!({ content, reasoning: "", toolCalls, tools, turnIndex: 2, finish });
}

const lend = (argumentsText: string, id = "call_a"): ChatToolCall => ({
  id,
  name: "lend",
  argumentsText,
});

test("words go to the user", () => {
  expect(read([], { content: "Which book?" })).toEqual({
    message: { role: "assistant", content: "Which book?" },
    reasoning: "",
    intents: [
      { type: "act", callId: "t0002c000", action: { type: "say", content: "Which book?" } },
    ],
    attemptCounts: {},
    form: { attempts: [], leakedMarkup: false, thinkingMalformed: false },
  });
});

test("markup of calls in the text is noted, because the server did not read it", () => {
  const { form } = read([], { content: '<tool_call>{"name": "lend"}' });
  expect(form?.leakedMarkup).toBe(true);
});

test("calls are performed in order, under their own ids", () => {
  const { intents, message, attemptCounts, form } = read(
    [lend('{"days": 1}'), lend('{"days": 2}'), { name: "lend", argumentsText: "{}" }],
    { content: "One moment." },
  );
  expect(message).toEqual({
    role: "assistant",
    content: "One moment.",
    toolCalls: [
      { id: "call_a", name: "lend", argumentsText: '{"days": 1}' },
      { id: "t0002c001", name: "lend", argumentsText: '{"days": 2}' },
      { id: "t0002c002", name: "lend", argumentsText: "{}" },
    ],
  });
  expect(intents.map(({ type, callId }) => [type, callId])).toEqual([
    ["act", "call_a"],
    ["act", "t0002c001"],
    ["act", "t0002c002"],
  ]);
  expect(attemptCounts).toEqual({ ok: 3 });
  // In the text "One moment.", then each call in a line of its own.
  expect(form?.attempts.map(({ span }) => span)).toEqual([
    [12, 28],
    [29, 45],
    [46, 53],
  ]);
});

describe("a call that cannot be performed is the model's mistake:", () => {
  test.each<[ChatToolCall, string, string]>([
    [lend("{broken"), "invalid-json", "Error: the tool call is not valid JSON"],
    [
      lend("[1]"),
      "non-object-arguments",
      "Error: the arguments of the tool call must be a JSON object",
    ],
    [
      lend('"{\\"days\\": 1}"'),
      "double-encoded-arguments",
      "Error: the arguments of the tool call must be a JSON object",
    ],
    [
      { id: "b", name: "lendd", argumentsText: "{}" },
      "unknown-tool",
      'Error: unknown tool "lendd", the available tools are: lend',
    ],
    [{ id: "b", argumentsText: "{}" }, "missing-name", "Error: the tool call has no name"],
  ])("%j", (call, status, observation) => {
    const { attemptCounts, intents } = read([call]);
    expect(intents).toEqual([
      {
        type: "refuse",
        callId: call.id,
        name: call.name ?? "unreadable_call",
        status,
        observation,
      },
    ]);
    expect(attemptCounts).toEqual({ [status]: 1 });
  });

  test("one of a turn that is cut at its limit", () => {
    expect(read([lend('{"days": 1}')], { finish: "length" }).intents).toMatchObject([
      { type: "refuse", status: "truncated-by-length" },
    ]);
  });
});

test("the rules for calls hold as for sampled text", () => {
  expect(read([lend('{"days": "1"}')], { refuse: ["schema-mismatch"] }).intents).toMatchObject([
    { type: "refuse", status: "schema-mismatch" },
  ]);
  expect(read([lend('{"days": 1,}')], { repair: ["invalid-json"] }).intents).toMatchObject([
    { type: "act", repaired: true },
  ]);
  const { intents } = read([lend('{"days": 1}'), lend('{"days": 2}', "call_b")], {
    toolUsePolicy: toolUsePolicies.first,
  });
  expect(intents.map(({ type }) => type)).toEqual(["act", "ignore"]);
});

test("an empty policy text is no system message", () => {
  const agent = createChatToolAgent({ toolUsePolicy: toolUsePolicies.many });
  const start = { tools, firstUserText: "Hi", seed: 0, taskIndex: 0 };
  expect(agent.open({ ...start, policyText: " " }).messages).toEqual([
    { role: "user", content: "Hi" },
  ]);
});
