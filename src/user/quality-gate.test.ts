import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import type { Task } from "../task.ts";
import { llmUser } from "./llm-user.ts";
import { findLineProblems, withQualityGate } from "./quality-gate.ts";
import { scriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";
import { createScriptedUser } from "./scripted-user.ts";

const signal = new AbortController().signal;
const instruction =
  "You are Ann Lee. You bought a red kettle, order #W12, and want to return it for store credit " +
  "because it leaks.";
const task: Task = {
  id: "shop/test/3",
  environment: "shop",
  split: "test",
  index: 3,
  instruction,
  data: null,
};

describe("findLineProblems()", () => {
  const find = (line: string, agentText: string | null = "Shall I go on?") =>
    findLineProblems(line, { agentText, instruction, maxSharedWords: 8 });

  test.each([
    ["###STOP###", null, ["premature-stop"]],
    ["Yes, please ###STOP###", "Shall I go on?", ["premature-stop"]],
    ["Yes, please ###STOP###", "Shall I go on? **", ["premature-stop"]],
    ["Thanks! ###STOP###", "It is returned.", []],
    ["###STOP###.", "Anything else?", []],
    ["Yes, please", "Shall I go on?", []],
  ])("a stop in %j after %j: %j", (line, agentText, problems) => {
    expect(find(line, agentText)).toEqual(problems);
  });

  test("leaving with text in answer to a question is premature, even without a marker", () => {
    const context = { agentText: "Shall I go on?", instruction, maxSharedWords: 8 };
    const leaving = (text: string) => findLineProblems({ text, leaves: true }, context);
    expect(leaving("Yes, please.")).toEqual(["premature-stop"]);
    expect(leaving("")).toEqual([]);
  });

  test.each([
    "Hello! How can I help you today?",
    "Agent: your order is on its way",
    "Is there anything else I can help you with?",
    "I'd be happy to assist you with that.",
    "I have successfully processed your return.",
    "To verify your identity, please provide your zip code.",
  ])("%j is a phrase of an agent", (line) => {
    expect(find(line)).toEqual(["role-swap"]);
  });

  test.each([
    "Can you help me with a return?",
    "I have cancelled my other order.",
    "No, there is nothing else. Thanks for your help!",
    "My agent: a friend of mine, bought it.",
  ])("%j is a phrase of a customer", (line) => {
    expect(find(line)).toEqual([]);
  });

  test("a run of the instruction's words is a leak, in any case and punctuation", () => {
    const eight = "order #W12 and want to RETURN, it for!";
    expect(find(`Hi, ${eight} money`)).toEqual([]);
    expect(find(`Hi, ${eight} Store money`)).toEqual(["leaked-instruction"]);
  });

  test.each([`"You're the best I have ever met!"`, `'You're the best I have ever met!'`])(
    "a quoted phrase of the instruction may be said: %s",
    (said) => {
      const context = { agentText: "x", instruction: `Always say ${said}.`, maxSharedWords: 4 };
      expect(findLineProblems("ok. You're the best I have ever met!", context)).toEqual([]);
      expect(
        findLineProblems("ok. You're the best I have ever met!", {
          ...context,
          instruction: said.slice(1, -1),
        }),
      ).toEqual(["leaked-instruction"]);
    },
  );

  test("finds several problems in one line", () => {
    expect(find(`Agent: ${instruction} ###STOP###`, null)).toEqual([
      "premature-stop",
      "role-swap",
      "leaked-instruction",
    ]);
  });
});

describe("withQualityGate()", () => {
  test("counts problems and changes no line, unless it may resample", async () => {
    const model = scriptedChatModel(["How can I help you?", "ok"]);
    const user = withQualityGate(llmUser({ model }));
    expect(user.strategy).toBe("llm");
    const session = user.open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("How can I help you?");
    expect(await session.reply("x", { signal })).toBe("ok");
    expect(session.usage()).toEqual({
      callCount: 2,
      inputTokenCount: 0,
      outputTokenCount: 0,
      quality: { problems: { "role-swap": 1 }, retakeCount: 0 },
    });
  });

  test("resamples a line with problems, and sends the last one", async () => {
    const model = scriptedChatModel([
      "How can I help you?",
      "###STOP###",
      "I want a refund",
      "Agent: a",
      "Agent: b",
      "Agent: c",
    ]);
    const user = withQualityGate(llmUser({ model, repair: [] }), { maxRetakes: 2 });
    const session = user.open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("I want a refund");
    expect(await session.reply("x", { signal })).toBe("Agent: c");
    expect(session.usage().quality).toEqual({
      problems: { "role-swap": 4, "premature-stop": 1 },
      retakeCount: 4,
    });
    expect(model.requests[5]?.messages.slice(2)).toEqual([
      { role: "assistant", content: "I want a refund" },
      { role: "user", content: "x" },
    ]);
    model.assertDrained();
  });

  test("only counts for a user without `retake()`", async () => {
    const user = withQualityGate(createScriptedUser({ lines: ["###STOP###"] }), { maxRetakes: 2 });
    const session = user.open(task, { seed: 1 });
    expect("retake" in session).toBe(false);
    expect(await session.begin({ signal })).toBe("###STOP###");
    expect(session.usage().quality?.problems).toEqual({ "premature-stop": 1 });
  });

  test("an outage while resampling stays an outage", async () => {
    const outage = new RolloutError("user/timeout", "no reply");
    const model = scriptedChatModel(["Agent: a", outage]);
    const session = withQualityGate(llmUser({ model }), { maxRetakes: 1 }).open(task, { seed: 1 });
    await expect(session.begin({ signal })).rejects.toBe(outage);
  });

  test("gates can be nested", async () => {
    const model = scriptedChatModel(["Agent: a", "fine"]);
    const inner = withQualityGate(llmUser({ model }));
    const session = withQualityGate(inner, { maxRetakes: 1 }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("fine");
    expect(session.usage().quality).toEqual({ problems: { "role-swap": 1 }, retakeCount: 1 });
  });
});
