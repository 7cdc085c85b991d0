import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import type { Task } from "../task.ts";
import { scriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";
import { reactUser } from "./react-user.ts";
import { textOfLine } from "./user.ts";
import type { UserRepairChoice } from "./user-repairs.ts";

const { signal } = new AbortController();
const task: Task = {
  id: "shop/test/0",
  environment: "shop",
  split: "test",
  index: 0,
  instruction: "Buy tea.",
  data: null,
};

/** Returns the user's second line, or the code of its failure. */
async function read(reply: string, repair: UserRepairChoice = []): Promise<string> {
  const model = scriptedChatModel(["User Response: hello", reply]);
  const session = reactUser({ model, repair }).open(task, { seed: 0 });
  await session.begin({ signal });
  try {
    return textOfLine(await session.reply("And?", { signal }));
  } catch (error) {
    expect(error).toBeInstanceOf(RolloutError);
    return (error as RolloutError).code;
  }
}

describe("reactUser()", () => {
  test.each([
    ["Thought: x\nUser Response: hi", "x\nUser Response: hi", "hi"],
    ["User Response: \u00a0hi\u001f ", "hi", "hi"],
    ["Thought: only a thought", "only a thought", "user/bad-reply"],
    ["Thought: ###STOP### not yet\nUser Response: hi", "###STOP###", "hi"],
    ["Thought: done\nUser Response: ###STOP### bye", "###STOP###", "###STOP###"],
    ["###STOP###", "###STOP###", "###STOP###"],
    ["Thought: a Thought: b\nUser Response: hi", "user/bad-reply", "hi"],
    ["User Response: a\nUser Response: b", "user/bad-reply", "b"],
    ["hi", "user/bad-reply", "user/bad-reply"],
    ["thought: hi", "user/bad-reply", "user/bad-reply"],
    ["**Thought:** x\n**User Response:** hi", "** x\n**User Response:** hi", "hi"],
    ["**Thought**: x\n**User Response**: **hi**", "user/bad-reply", "**hi**"],
    ["### Thought\nx\n### user response :\nhi", "user/bad-reply", "hi"],
    ["User Response: hi\n\nThought: x ###STOP###", "###STOP###", "hi"],
    ["User Response: hi\n**Thought:** x", "** x", "hi"],
    ["Thought: x\nUser Response: a\nThought: y\nUser Response: b", "user/bad-reply", "b"],
  ])("reads %j as the original does, and repaired", async (reply, original, repaired) => {
    expect(await read(reply)).toBe(original);
    expect(await read(reply, ["thought-leak", "stop-in-thought", "labels"])).toBe(repaired);
  });
});
