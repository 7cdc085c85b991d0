import { describe, expect, test } from "vitest";
import type { Task } from "../task.ts";
import { defaultScript, createScriptedUser } from "./scripted-user.ts";

const task: Task = {
  id: "shop/test/3",
  environment: "shop",
  split: "test",
  index: 3,
  instruction: "You want a refund for order 7.",
  data: null,
};
const signal = new AbortController().signal;

describe("createScriptedUser()", () => {
  test("says its lines in order, independent of the agent", async () => {
    const session = createScriptedUser({ lines: ["one", "", "three"] }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("one");
    expect(await session.reply("What?", { signal })).toBe("");
    expect(await session.reply("", { signal })).toBe("three");
  });

  test("leaves with a leaving line only, independent of its text", async () => {
    const farewell = { text: "Bye.", leaves: true } as const;
    const session = createScriptedUser({ lines: [farewell, "###STOP###", farewell] }).open(task, {
      seed: 1,
    });
    expect(await session.begin({ signal })).toBe("Bye.");
    expect(await session.reply("x", { signal })).toBe("###STOP###");
    expect(await session.reply("x", { signal })).toEqual(farewell);
  });

  test("uses each task's own lines from a function", async () => {
    const user = createScriptedUser({ lines: ({ id, index }) => [`${id} ${index}`] });
    expect(await user.open(task, { seed: 1 }).begin({ signal })).toBe("shop/test/3 3");
  });

  test("starts again at the first line in every session", async () => {
    const user = createScriptedUser({ lines: ["one", "two"] });
    for (let round = 0; round < 2; round++) {
      const session = user.open(task, { seed: round });
      expect(await session.begin({ signal })).toBe("one");
      expect(await session.reply("x", { signal })).toBe("two");
    }
  });

  test("fails with `user/script-exhausted` after the last line", async () => {
    const session = createScriptedUser({ lines: ["one"] }).open(task, { seed: 1 });
    await session.begin({ signal });
    await expect(session.reply("x", { signal })).rejects.toMatchObject({
      code: "user/script-exhausted",
      retryable: false,
      message:
        "Cannot answer for task shop/test/3: the script has only 1 lines, " +
        "expected a longer script or a last line that leaves: {text, leaves: true}",
    });
  });

  test("says no line after its signal is aborted", async () => {
    const reason = new Error("cancelled");
    const session = createScriptedUser({ lines: ["one"] }).open(task, { seed: 1 });
    await expect(session.begin({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(await session.begin({ signal })).toBe("one");
  });

  test("has no spending", () => {
    const session = createScriptedUser({ lines: [] }).open(task, { seed: 1 });
    expect(session.usage()).toEqual({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 });
  });
});

test("`defaultScript()` states the instruction, agrees once and leaves", () => {
  expect(defaultScript(task)).toEqual([
    "You want a refund for order 7.",
    "Yes, please go ahead.",
    { text: "That is all. Thank you.", leaves: true },
  ]);
});
