import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { startChatCompletionsServer } from "../engine/chat/chat-completions-server.fixture.ts";
import { UsageError } from "../errors.ts";
import type { Task } from "../task.ts";
import { createUser } from "./create-user.ts";
import type { AiSdkLanguageModel } from "./chat/language-model-call.ts";
import { scriptedChatModel } from "./chat/scripted-chat-model.fixture.ts";

const signal = new AbortController().signal;
const task: Task = {
  id: "shop/test/3",
  environment: "shop",
  split: "test",
  index: 3,
  instruction: "You want tea.",
  data: null,
};

describe("createUser()", () => {
  test.each(["llm", "react", "verify", "reflection"] as const)(
    "creates a user of strategy %s",
    (strategy) => {
      expect(createUser({ strategy, model: scriptedChatModel([]) }).strategy).toBe(strategy);
    },
  );

  test("the default script states the task's instruction", async () => {
    const session = createUser({ strategy: "scripted" }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("You want tea.");
  });

  test("a human user is at the given terminal", async () => {
    const input = new PassThrough();
    input.write("tea\n");
    const user = createUser({ strategy: "human" }, { input, output: new PassThrough() });
    expect(await user.open(task, { seed: 1 }).begin({ signal })).toBe("tea");
  });

  test("reaches a server by its configuration, with the key from the environment", async () => {
    await using server = await startChatCompletionsServer(["a", "false", "b", "true"]);
    const model = { baseUrl: server.baseUrl, model: "m", apiKeyEnv: "KEY", maxAttempts: 1 };
    const user = createUser(
      {
        strategy: "verify",
        model,
        judge: { ...model, model: "j" },
        repair: "draft-object, judge-word",
        temperature: 0,
        qualityGate: { maxRetakes: 1 },
      },
      { env: { KEY: "k" } },
    );
    const session = user.open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("b");
    expect(server.requests.map(({ body }) => [body["model"], body["temperature"]])).toEqual([
      ["m", 0],
      ["j", 0],
      ["m", 0],
      ["j", 0],
    ]);
    expect(server.requests[3]?.headers.authorization).toBe("Bearer k");
    expect(session.usage()).toEqual({
      callCount: 4,
      inputTokenCount: 40,
      outputTokenCount: 20,
      quality: { problems: {}, retakeCount: 0 },
    });
  });

  test("accepts a model of the AI SDK", async () => {
    const model = {
      specificationVersion: "v2",
      modelId: "sdk",
      doGenerate: async () => ({
        content: [{ type: "text", text: "Hi" }],
        finishReason: "stop",
        usage: { inputTokens: 1, outputTokens: 2 },
      }),
    } as unknown as AiSdkLanguageModel;
    const session = createUser({ strategy: "llm", model }).open(task, { seed: 1 });
    expect(await session.begin({ signal })).toBe("Hi");
  });

  const model = { baseUrl: "http://127.0.0.1:1/v1", model: "m" };

  test.each([
    [{ strategy: "nope" }, /^Cannot create a user: `strategy`: /],
    [{}, /^Cannot create a user: `strategy`: /],
    [{ strategy: "llm" }, /^Cannot create a user: `model`: expected a chat model, or /],
    [{ strategy: "llm", model, lines: [] }, /^Cannot create a user: .*"lines"/],
    [{ strategy: "llm", model, judge: model }, /^Cannot create a user: .*"judge"/],
    [{ strategy: "llm", model: { ...model, modle: "m" } }, /`model`: .*"modle"/],
    [{ strategy: "llm", model: { ...model, timeoutMs: 0 } }, /`model\.timeoutMs`: /],
    [{ strategy: "verify", model, judge: { model: "j" } }, /`judge\.baseUrl`: /],
    [{ strategy: "react", model, repair: "thought-leak,x" }, /^Cannot repair "x": /],
    [{ strategy: "llm", model, temperature: -1 }, /`temperature`: /],
    [{ strategy: "llm", model, maxTokens: 1.5 }, /`maxTokens`: /],
    [{ strategy: "llm", model, qualityGate: { maxRetakes: -1 } }, /`qualityGate\.maxRetakes`: /],
    [{ strategy: "scripted", lines: [] }, /`lines`: expected a list of lines/],
    [{ strategy: "scripted", lines: ["a", 1] }, /`lines`: expected a list of lines/],
    [{ strategy: "human", model }, /^Cannot create a user: .*"model"/],
  ])("refuses %j, naming the field", (options, complaint) => {
    const make = () => createUser(options as never, { env: {} });
    expect(make).toThrow(UsageError);
    expect(make).toThrow(complaint);
  });

  test("closes the connections of the models that it created, and no others", async () => {
    await using server = await startChatCompletionsServer(["Hello", "Hello"]);
    const model = { baseUrl: server.baseUrl, model: "m" };
    const users = [
      createUser({ strategy: "llm", model }, { env: {} }),
      createUser({ strategy: "llm", model, qualityGate: {} }, { env: {} }),
    ];
    for (const user of users) await user.open(task, { seed: 1 }).begin({ signal });
    expect(server.connectionCount()).toBe(2);
    for (const user of users) await user.close?.();
    await server.deserted();

    const given = createUser({ strategy: "llm", model: scriptedChatModel([]) });
    await given.close?.();
    expect(createUser({ strategy: "scripted" })).not.toHaveProperty("close");
  });
});
