import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../message.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import { ownTextActionPrompts } from "./own-text-action-prompts.ts";
import { readTextAction } from "./read-text-action.ts";
import { createTextActionAgent, type TextActionOptions } from "./text-action-agent.ts";

const tools = toolsFromOpenAi(
  toPyValue([
    {
      type: "function",
      function: { name: "get_order", description: "Reads é.", parameters: { n: 1 } },
    },
  ]),
  "tools",
);

const prompt = { beforeTools: "\nTools: ", afterTools: "\nWrite an action." };

function read(
  text: string,
  {
    finish = "stop",
    opened = false,
    ...options
  }: Partial<TextActionOptions> & { finish?: "stop" | "length"; opened?: boolean } = {},
) {
  return createTextActionAgent({ strategy: "act", prompt, ...options }).read({
    text,
    tools,
    turnIndex: 12,
    finish,
    reasoningOpened: opened,
  });
}

const action = '{"name": "get_order", "arguments": {"order_id": "#W1", "x": 1.0}}';

describe("createTextActionAgent()", () => {
  test("describes the tools in the system message, and passes none to the template", () => {
    const start = { policyText: "Policy.", tools, firstUserText: "Hi", seed: 0, taskIndex: 0 };
    expect(createTextActionAgent({ strategy: "react", prompt }).open(start)).toEqual({
      messages: [
        {
          role: "system",
          content:
            'Policy.\nTools: [{"type": "function", "function": {"name": "get_order", ' +
            '"description": "Reads \\u00e9.", "parameters": {"n": 1}}}]\nWrite an action.',
        },
        { role: "user", content: "Hi" },
      ],
      tools: [],
    });
  });

  test("executes the action of a turn, and keeps the complete turn as its message", () => {
    const text = `Thought: hm\nAction:\n${action}`;
    expect(read(text)).toEqual({
      message: { role: "assistant", content: text },
      reasoning: "",
      intents: [
        {
          type: "act",
          callId: "t0012c000",
          action: {
            type: "call",
            name: "get_order",
            arguments: new Map<string, unknown>([
              ["order_id", "#W1"],
              ["x", 1],
            ]),
          },
        },
      ],
      attemptCounts: { ok: 1 },
    });
  });

  test("sends the content of the action `respond` to the user", () => {
    const { intents } = read('Action: {"name": "respond", "arguments": {"content": " Hi\\n"}}');
    expect(intents).toMatchObject([{ action: { type: "say", content: " Hi\n" } }]);
  });

  test("passes a `respond` with other content than text to the environment", () => {
    const { intents } = read('Action: {"name": "respond", "arguments": {"content": 5}}');
    expect(intents).toMatchObject([{ action: { type: "call", name: "respond" } }]);
  });

  test("sends an action that is not JSON to the user, and counts it", () => {
    expect(read("Thought: x\nAction:\n```json\n{}\n```\n")).toMatchObject({
      intents: [{ type: "act", action: { type: "say", content: "```json\n{}\n```" } }],
      attemptCounts: { "invalid-json": 1 },
    });
    expect(read(" hello \n")).toMatchObject({
      message: { content: " hello \n" },
      intents: [{ type: "act", action: { type: "say", content: "hello" } }],
      attemptCounts: {},
    });
  });

  test("refuses an action that is not JSON if `invalidAction` is `refuse`, but no text", () => {
    const { intents, attemptCounts } = read("Action: {bad}", { invalidAction: "refuse" });
    expect(intents).toEqual([
      {
        type: "refuse",
        callId: "t0012c000",
        name: "unreadable_action",
        status: "invalid-json",
        observation: "Error: the action is not valid JSON",
      },
    ]);
    expect(attemptCounts).toEqual({ "invalid-json": 1 });
    expect(read("hello", { invalidAction: "refuse" }).intents).toMatchObject([
      { action: { type: "say" } },
    ]);
  });

  test("returns an error to the policy for JSON that is not an action", () => {
    expect(read('Action: {"name": "get_order"}')).toMatchObject({
      intents: [
        {
          type: "refuse",
          name: "get_order",
          status: "malformed-structure",
          observation: 'Error: the action has no "arguments"',
        },
      ],
      attemptCounts: { "malformed-structure": 1 },
    });
  });

  test("executes no action of a turn that was cut by length", () => {
    for (const text of [`Action: ${action}`, 'Action: {"name": "get_or', "{", "Action:"]) {
      expect(read(text, { finish: "length" })).toMatchObject({
        intents: [
          {
            type: "refuse",
            status: "truncated-by-length",
            observation: "Error: the action was cut off",
          },
        ],
        attemptCounts: { "truncated-by-length": 1 },
      });
    }
    expect(read("It is on its w", { finish: "length" }).intents).toMatchObject([
      { action: { type: "say", content: "It is on its w" } },
    ]);
  });

  test("reads no action from the reasoning", () => {
    const splitReasoning = (text: string, { opened }: { opened: boolean }) => {
      const end = text.indexOf("</think>");
      return opened && end !== -1
        ? { reasoning: text.slice(0, end), rest: text.slice(end + "</think>".length) }
        : { reasoning: "", rest: text };
    };
    const reading = read('Action: {"name": "f"}</think>\n\nHello', {
      splitReasoning,
      opened: true,
    });
    expect(reading).toMatchObject({
      message: { role: "assistant", content: "Hello" },
      reasoning: 'Action: {"name": "f"}',
      intents: [{ action: { type: "say", content: "Hello" } }],
    });
  });

  test("converts tool results and user lines to user messages", () => {
    const agent = createTextActionAgent({ strategy: "act", prompt });
    expect(
      agent.observe([
        { callId: "a", name: "get_order", from: "tool", text: "pending" },
        { callId: "b", name: "user", from: "user", text: "thanks" },
      ]),
    ).toEqual([
      { role: "user", content: "API output: pending" },
      { role: "user", content: "thanks" },
    ]);
  });

  test("returns a reading for every text", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json(),
      fc.constantFrom("Action:", '{"name": ', '"respond"', '"arguments": ', "{", "}", "\uD800"),
    );
    fc.assert(
      fc.property(
        fc.array(piece).map((pieces) => pieces.join("")),
        fc.constantFrom("stop", "length"),
        fc.constantFrom("say", "refuse"),
        (text, finish, invalidAction) => {
          expect(read(text, { finish, invalidAction }).intents).toHaveLength(1);
        },
      ),
    );
  });
});

describe("the default prompts", () => {
  test.each(["act", "react"] as const)("show %s only readable actions", (strategy) => {
    const { afterTools } = ownTextActionPrompts[strategy];
    const [, , ...examples] = afterTools.split("Action:\n");
    expect(examples.map((example) => readTextAction(example.split("\n")[0] ?? ""))).toMatchObject([
      { type: "action", name: "get_order" },
      { type: "action", name: "respond" },
    ]);
    expect(afterTools.includes("Thought:")).toBe(strategy === "react");
  });
});
