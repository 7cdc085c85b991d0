import { describe, expect, test } from "vitest";
import { startChatCompletionsServer } from "../engine/chat/chat-completions-server.fixture.ts";
import { InvariantError, RolloutError, isOwnBug } from "../errors.ts";
import type { Task } from "../task.ts";
import { endpointChatModel } from "./chat/ai-sdk-chat-model.ts";
import { llmUser } from "./llm-user.ts";
import { ownUserPrompts } from "./own-user-prompts.ts";
import { scriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";

const signal = new AbortController().signal;
const instruction = "You are Ann and {instruction} want $& refund.";
const task: Task = {
  id: "shop/test/3",
  environment: "shop",
  split: "test",
  index: 3,
  instruction,
  data: null,
};
const greeting = { role: "user", content: "Hi! How can I help you today?" };
const system = {
  role: "system",
  content: ownUserPrompts.llm.withInstruction.replace("{instruction}", () => instruction),
};

test("a model user's messages reach a server unchanged", async () => {
  await using server = await startChatCompletionsServer(["I want a refund.", "###STOP###"]);
  const endpoint = { baseUrl: server.baseUrl, model: "m" };
  const model = endpointChatModel({
    endpoint,
    env: {},
    prices: { inputUsd: 1, outputUsd: 10 },
  });
  const session = llmUser({ model }).open(task, { seed: 1 });
  expect(server.requests).toEqual([]);
  expect(await session.begin({ signal })).toBe("I want a refund.");
  expect(await session.reply("Done.", { signal })).toEqual({ text: "###STOP###", leaves: true });
  expect(server.requests.map(({ body }) => body)).toEqual([
    { model: "m", messages: [system, greeting] },
    {
      model: "m",
      messages: [
        system,
        greeting,
        { role: "assistant", content: "I want a refund." },
        { role: "user", content: "Done." },
      ],
    },
  ]);
  expect(session.usage()).toEqual({
    callCount: 2,
    inputTokenCount: 20,
    outputTokenCount: 10,
    costUsd: 120 / 1e6,
  });
  await model.close();
});

describe("a model conversation", () => {
  test("sends temperature, token limit and seed only if they are set", async () => {
    const model = scriptedChatModel(["a", "b"]);
    const options = { model, temperature: 0.5, maxTokens: 99, seeded: true, greeting: "Hello." };
    const session = llmUser(options).open(task, { seed: 2 ** 31 - 1 });
    await session.begin({ signal });
    await session.reply("x", { signal });
    expect(model.requests[0]).toEqual({
      messages: [system, { role: "user", content: "Hello." }],
      temperature: 0.5,
      maxTokens: 99,
      seed: 2 ** 31 - 1,
    });
    expect(model.requests[1]?.seed).toBe(0);
  });

  test("the user leaves by the stop marker anywhere in the text, also in a retake", async () => {
    const model = scriptedChatModel(["###STOP###", "Bye ###STOP###.", "###stop###"]);
    const session = llmUser({ model, repair: [] }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("###STOP###");
    expect(await session.reply("x", { signal })).toEqual({ text: "Bye ###STOP###.", leaves: true });
    expect(await session.retake?.({ signal })).toBe("###stop###");
  });

  test.each([
    "###stop###.",
    "Thanks! ### STOP ###",
    "**##Stop##**",
    "###STOP",
    "**##STOP**",
    "Thanks! \\#\\#\\#STOP\\#\\#\\#",
  ])("the user leaves by %j if misspelt signals are repaired", async (text) => {
    const model = scriptedChatModel(["Hi", text]);
    const session = llmUser({ model, repair: ["stop-spelling"] }).open(task, { seed: 1 });
    await session.begin({ signal });
    expect(await session.reply("x", { signal })).toEqual({ text, leaves: true });
  });

  test.each(["Stop!", "### Stop my order", "# STOP #", "Hi ##STOP"])(
    "the user does not leave by %j",
    async (text) => {
      const model = scriptedChatModel(["Hi", text]);
      const session = llmUser({ model }).open(task, { seed: 1 });
      await session.begin({ signal });
      expect(await session.reply("x", { signal })).toBe(text);
    },
  );

  test("a stop marker in the first line is requested again, also in a retake", async () => {
    const model = scriptedChatModel(["###STOP###", "Hi", "Bye. ###STOP###", "Hello", "a"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("Hi");
    expect(await session.retake?.({ signal })).toBe("Hello");
    expect(model.requests.slice(0, 4).map(({ messages }) => messages)).toEqual(
      Array.from({ length: 4 }, () => [system, greeting]),
    );
    await session.reply("x", { signal });
    expect(model.requests[4]?.messages.slice(2)).toEqual([
      { role: "assistant", content: "Hello" },
      { role: "user", content: "x" },
    ]);
    expect(session.usage().callCount).toBe(5);
  });

  test("a first line that stays a stop marker is the user's failure, and the memory is unchanged", async () => {
    const model = scriptedChatModel(["###STOP###", "No. ###STOP###", "###STOP###.", "Hi"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    await expect(session.begin({ signal })).rejects.toMatchObject({
      code: "user/bad-reply",
      retryable: true,
      message:
        "Cannot use the user's first line: llm wrote the stop marker ###STOP### 3 times, expected " +
        "the user's request; check the instruction and the model",
    });
    expect(await session.begin({ signal })).toBe("Hi");
    expect(model.requests[3]).toEqual(model.requests[0]);
  });

  test("a stop marker in a thought does not count", async () => {
    const model = scriptedChatModel(["Hi", "<think>Not yet ###STOP###</think>And the refund?"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    await session.begin({ signal });
    expect(await session.reply("x", { signal })).toBe("And the refund?");
  });

  test("a line without text is the user's failure", async () => {
    const model = scriptedChatModel([" \n"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    await expect(session.begin({ signal })).rejects.toMatchObject({
      code: "user/empty-reply",
      retryable: true,
      message: "Cannot use the user's line: llm returned an empty one, expected text",
    });
  });

  test("a failure leaves the memory unchanged, so that the call can be retried", async () => {
    const outage = new RolloutError("user/timeout", "no reply", { retryable: true });
    const model = scriptedChatModel(["a", outage, "b"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    await session.begin({ signal });
    await expect(session.reply("x", { signal })).rejects.toBe(outage);
    expect(await session.reply("x", { signal })).toBe("b");
    expect(model.requests[2]).toEqual(model.requests[1]);
  });

  test("`retake()` replaces the last line", async () => {
    const model = scriptedChatModel(["a", "b", "c", "d"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    await session.begin({ signal });
    await session.reply("x", { signal });
    expect(await session.retake?.({ signal })).toBe("c");
    expect(model.requests[2]).toEqual(model.requests[1]);
    await session.reply("y", { signal });
    expect(model.requests[3]?.messages.slice(3)).toEqual([
      { role: "user", content: "x" },
      { role: "assistant", content: "c" },
      { role: "user", content: "y" },
    ]);
    expect(session.usage().callCount).toBe(4);
  });

  test("a failed `retake()` keeps the last line", async () => {
    const outage = new RolloutError("user/timeout", "no reply");
    const model = scriptedChatModel(["a", outage, "b"]);
    const session = llmUser({ model }).open(task, { seed: 1 });
    await session.begin({ signal });
    await expect(session.retake?.({ signal })).rejects.toBe(outage);
    await session.reply("x", { signal });
    expect(model.requests[2]?.messages[2]).toEqual({ role: "assistant", content: "a" });
  });

  test("`retake()` before the first line is the caller's mistake", async () => {
    const session = llmUser({ model: scriptedChatModel([]) }).open(task, { seed: 1 });
    const thrown = await session.retake?.({ signal }).catch((error: unknown) => error);
    expect(thrown).toEqual(new InvariantError("retake() needs a line that was said"));
    expect(isOwnBug(thrown)).toBe(false);
  });

  test("sessions of one user share no memory", async () => {
    const model = scriptedChatModel(["a", "b"]);
    const user = llmUser({ model });
    await user.open(task, { seed: 1 }).begin({ signal });
    await user.open(task, { seed: 2 }).begin({ signal });
    expect(model.requests[1]).toEqual(model.requests[0]);
  });

  test("a cut line is sent, unless that is repaired", async () => {
    const cut = { text: "I want a ref", finishReason: "length" } as const;
    const begin = (repair: "all" | []) =>
      llmUser({ model: scriptedChatModel([cut]), repair })
        .open(task, { seed: 1 })
        .begin({ signal });
    expect(await begin([])).toBe("I want a ref");
    await expect(begin("all")).rejects.toMatchObject({ code: "user/bad-reply", retryable: true });
  });

  test.each([
    ["<think>\nhm\n</think>\n\nHi", "Hi"],
    ["Hi <think>x</think>", "Hi"],
    ["The PIN is secret.\n</think>\n\nHi", "Hi"],
    ["Hi", "Hi"],
  ])("removes the reasoning of %j if that is repaired", async (text, line) => {
    const model = scriptedChatModel([text, text]);
    const repaired = llmUser({ model, repair: ["think-block"] }).open(task, { seed: 1 });
    expect(await repaired.begin({ signal })).toBe(line);
    const original = llmUser({ model, repair: [] }).open(task, { seed: 1 });
    expect(await original.begin({ signal })).toBe(text);
  });

  test("a benchmark's prompts keep the benchmark's behaviour, the default prompts do not", async () => {
    const model = scriptedChatModel(["<think>x</think>Hi", "<think>x</think>Hi"]);
    const own = llmUser({ model }).open(task, { seed: 1 });
    const given = llmUser({ model, prompts: ownUserPrompts }).open(task, { seed: 1 });
    expect(await own.begin({ signal })).toBe("Hi");
    expect(await given.begin({ signal })).toBe("<think>x</think>Hi");
  });

  test("a <think> block without an end leaves no text", async () => {
    const model = scriptedChatModel(["<think>hm, I"]);
    const session = llmUser({ model, repair: "all" }).open(task, { seed: 1 });
    await expect(session.begin({ signal })).rejects.toMatchObject({ code: "user/empty-reply" });
  });
});
