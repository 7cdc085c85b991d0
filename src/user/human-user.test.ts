import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import type { Task } from "../task.ts";
import { humanUser } from "./human-user.ts";

const signal = new AbortController().signal;

function task(id: string): Task {
  return { id, environment: "e", split: "s", index: 0, instruction: "You want tea.", data: null };
}

function terminal() {
  const input = new PassThrough();
  const output = new PassThrough({ encoding: "utf8" });
  return { input, user: humanUser({ input, output }), shown: () => output.read() as string | null };
}

describe("the human user", () => {
  test("shows the instruction and the agent's messages, and reads answers line by line", async () => {
    const { input, user, shown } = terminal();
    const session = user.open(task("t/1"), { seed: 1 });
    input.write("I want tea\n\n  \nGreen, please\n");
    expect(await session.begin({ signal })).toBe("I want tea");
    expect(shown()).toBe(
      "\n[t/1]\nYou play this customer. When nothing is left to say, write /leave, with or without a " +
        "last line after it.\n\n" +
        "You want tea.\n> ",
    );
    expect(await session.reply("Which?", { signal })).toBe("Green, please");
    expect(shown()).toBe("\n[t/1]\nAgent: Which?\n> > > ");
    expect(session.usage()).toEqual({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 });
  });

  test("leaves by a command, not by a word", async () => {
    const { input, user } = terminal();
    const session = user.open(task("t/1"), { seed: 1 });
    input.write("May I /leave?\n/leaves\n /leave\n/leave Bye then. \n");
    expect(await session.reply("x", { signal })).toBe("May I /leave?");
    expect(await session.reply("x", { signal })).toBe("/leaves");
    expect(await session.reply("x", { signal })).toEqual({ text: "", leaves: true });
    expect(await session.reply("x", { signal })).toEqual({ text: "Bye then.", leaves: true });
  });

  test("removes control characters from the agent's text", async () => {
    const { input, user, shown } = terminal();
    input.write("ok\n");
    await user.open(task("t/1"), { seed: 1 }).reply("a\u001b[2Jb\r\u0007\tc\n\u009bd", { signal });
    expect(shown()).toBe("\n[t/1]\nAgent: a[2Jb\tc\nd\n> ");
  });

  test("conversations take turns at the terminal", async () => {
    const { input, user, shown } = terminal();
    const first = user.open(task("t/1"), { seed: 1 }).reply("one", { signal });
    const second = user.open(task("t/2"), { seed: 1 }).reply("two", { signal });
    await new Promise((resolve) => setImmediate(resolve));
    expect(shown()).toBe("\n[t/1]\nAgent: one\n> ");
    input.write("a\n");
    expect(await first).toBe("a");
    input.write("b\n");
    expect(await second).toBe("b");
    expect(shown()).toBe("\n[t/2]\nAgent: two\n> ");
  });

  test("an abort ends the wait, and the terminal is free for the next", async () => {
    const { input, user } = terminal();
    const abort = new AbortController();
    const first = user.open(task("t/1"), { seed: 1 }).begin({ signal: abort.signal });
    const second = user.open(task("t/2"), { seed: 1 }).begin({ signal });
    await Promise.resolve();
    abort.abort(new Error("over"));
    await expect(first).rejects.toThrow("over");
    input.write("b\n");
    expect(await second).toBe("b");
  });

  test("`user/left` after the end of the input", async () => {
    const { input, user } = terminal();
    const session = user.open(task("t/1"), { seed: 1 });
    input.end("last");
    expect(await session.begin({ signal })).toBe("last");
    for (let round = 0; round < 2; round++) {
      await expect(session.reply("x", { signal })).rejects.toMatchObject({
        code: "user/left",
        message: "Cannot answer for task t/1: the input has ended, expected a line",
      });
    }
  });

  test("does not read the input before the first question", () => {
    const { input } = terminal();
    expect(input.listenerCount("data")).toBe(0);
    expect(input.listenerCount("readable")).toBe(0);
  });
});
