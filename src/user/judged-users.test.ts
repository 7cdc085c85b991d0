import { describe, expect, test } from "vitest";
import type { Task } from "../task.ts";
import type { ScriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";
import { scriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";
import { reflectionUser } from "./reflection-user.ts";
import type { UserPrompts } from "./user-prompts.ts";
import { verifyUser } from "./verify-user.ts";

const signal = new AbortController().signal;
const task: Task = {
  id: "shop/test/3",
  environment: "shop",
  split: "test",
  index: 3,
  instruction: "I",
  data: null,
};
const prompts: UserPrompts = {
  llm: { withInstruction: "play {instruction}", withoutInstruction: "play" },
  react: { withInstruction: "think {instruction}", withoutInstruction: "think" },
  verify: "good? {transcript} | {response}",
  reflect: "better? {transcript} | {response}",
};

/** Returns the texts of each request, without roles. */
function asked({ requests }: ScriptedChatModel): string[][] {
  return requests.map(({ messages }) => messages.map(({ content }) => content));
}

const hi = "Hi! How can I help you today?";

describe("the verifying user", () => {
  test("calls a separate judge, and counts its calls", async () => {
    const model = scriptedChatModel(["a", "b"]);
    const judge = scriptedChatModel(["false", "true"]);
    const user = verifyUser({ model, judge, prompts, printDraft: (draft) => `<${draft}>` });
    const session = user.open(task, { seed: 1 });
    expect(user.strategy).toBe("verify");
    expect(await session.begin({ signal })).toBe("b");
    expect(asked(judge)).toEqual([
      [`good? System: play I\nCustomer: ${hi} | <a>`],
      [`good? System: play I\nCustomer: ${hi} | <b>`],
    ]);
    expect(session.usage().callCount).toBe(4);
  });

  test("shows the judge a draft as LiteLLM prints it", async () => {
    const model = scriptedChatModel(["it's\n", "true"]);
    await verifyUser({ model, prompts }).open(task, { seed: 1 }).begin({ signal });
    expect(asked(model)[1]?.[0]).toContain(
      " | Message(content=\"it's\\n\", role='assistant', tool_calls=None, function_call=None, " +
        "provider_specific_fields=None)",
    );
  });

  test("keeps braces in a draft and a transcript unchanged", async () => {
    const model = scriptedChatModel(["{transcript} $& {response}", "true"]);
    const user = verifyUser({ model, prompts, repair: ["draft-object"] });
    await user.open(task, { seed: 1 }).begin({ signal });
    expect(asked(model)[1]).toEqual([
      `good? System: play I\nCustomer: ${hi} | {transcript} $& {response}`,
    ]);
  });

  test("remembers the last rejected line if that is repaired", async () => {
    for (const repair of [[], ["forgotten-line"]] as const) {
      const model = scriptedChatModel(["a", "false", "b", "false", "c", "true"]);
      const user = verifyUser({ model, prompts, repair, maxDrafts: 2 });
      const session = user.open(task, { seed: 1 });
      expect(await session.begin({ signal })).toBe("b");
      await session.reply("x", { signal });
      const memory = repair.length === 0 ? [] : ["b"];
      expect(asked(model)[4]).toEqual(["play I", hi, ...memory, "x"]);
    }
  });

  test("labels the roles correctly if that is repaired", async () => {
    const model = scriptedChatModel(["a", "true", "b", "true"]);
    const session = verifyUser({ model, prompts, repair: "all" }).open(task, { seed: 1 });
    await session.begin({ signal });
    await session.reply("x", { signal });
    expect(asked(model)[3]).toEqual([
      `good? System: play I\nAgent: ${hi}\nCustomer: a\nAgent: x | b`,
    ]);
  });

  test.each([
    ["true", true, true],
    ["**True.**", true, true],
    ["untrue", true, false],
    ["It is not true", true, false],
    ["truely", true, false],
    ["false", false, false],
  ])("the judgement %j accepts: %j, repaired: %j", async (judgement, original, repaired) => {
    for (const [repair, accepted] of [
      [[], original],
      [["judge-word"], repaired],
    ] as const) {
      const model = scriptedChatModel(["a", judgement, "b", "true"]);
      const session = verifyUser({ model, prompts, repair }).open(task, { seed: 1 });
      expect(await session.begin({ signal })).toBe(accepted ? "a" : "b");
    }
  });
});

describe("the reflecting user", () => {
  test("sends the judge's better line to the simulator, and drafts again", async () => {
    const model = scriptedChatModel(["a", "b", "c"]);
    const judge = scriptedChatModel(["false", "Reflection: x\nResponse: y ", "true", "true"]);
    const session = reflectionUser({ model, judge, prompts }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("b");
    expect(asked(judge)[1]).toEqual([`better? System: play I\nCustomer: ${hi} | a`]);
    await session.reply("x", { signal });
    expect(asked(model)).toEqual([
      ["play I", hi],
      ["play I", hi, "y"],
      ["play I", hi, "a", "b", "x"],
    ]);
  });

  test("sends the first draft if none is accepted, or the last if that is repaired", async () => {
    for (const repair of [[], ["kept-drafts"]] as const) {
      const model = scriptedChatModel(["a", "b", "c"]);
      const judge = scriptedChatModel(["no", "Response: y", "no", "true"]);
      const session = reflectionUser({ model, judge, prompts, repair }).open(task, { seed: 1 });
      expect(await session.begin({ signal })).toBe(repair.length === 0 ? "a" : "b");
      await session.reply("x", { signal });
      const memory = repair.length === 0 ? ["a", "b"] : ["b"];
      expect(asked(model)[2]).toEqual(["play I", hi, ...memory, "x"]);
    }
  });

  test("accepts advice with a repeated label only if that is repaired", async () => {
    const replies = ["a", "no", "Response: is missing\nResponse: y", "b", "true"];
    const begin = (repair: "all" | []) =>
      reflectionUser({ model: scriptedChatModel(replies), prompts, repair })
        .open(task, { seed: 1 })
        .begin({ signal });
    await expect(begin([])).rejects.toMatchObject({ code: "user/bad-reply", retryable: true });
    expect(await begin("all")).toBe("b");
  });
});
