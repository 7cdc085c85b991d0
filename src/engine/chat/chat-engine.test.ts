import { describe, expect, test } from "vitest";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { UsageError } from "../../errors.ts";
import { toolFromOpenAi } from "../../message.ts";
import {
  startChatCompletionsServer,
  type ScriptedAnswer,
} from "./chat-completions-server.fixture.ts";
import { createChatEngine } from "./chat-engine.ts";
import type { ChatEngineOptions } from "./chat-engine-options.ts";
import type { ChatTurnRequest } from "./chat-turn.ts";

const tool = toolFromOpenAi(
  parsePythonJson(
    '{"type": "function", "function": {"name": "switch", "parameters": {"type": "object", "default": 1.0}}}',
  ),
  "a tool",
);

const request: ChatTurnRequest = {
  messages: [
    { role: "system", content: "You switch the lamp." },
    { role: "user", content: "Lamp on, please." },
    {
      role: "assistant",
      content: "",
      reasoning: "hm",
      toolCalls: [
        { id: "call_0", name: "switch", argumentsText: "{}", members: { extra_content: "c2ln" } },
        { id: "call_1", name: "switch", argumentsText: "{broken" },
        { id: "call_2", name: "switch", argumentsText: "[NaN]" },
      ],
      members: { reasoning_content: "hm", annotations: [] },
    },
    { role: "tool", content: "on", toolCallId: "call_0", name: "switch" },
  ],
  tools: [tool],
  sampling: { temperature: 0.5, topP: 0.9, topK: -1, minP: 0, seed: 7 },
  maxNewTokens: 64,
  requestId: "lamp/test/0#0:1:0",
  sessionId: "lamp/test/0#0",
};

async function ask(answers: readonly ScriptedAnswer[], options: Partial<ChatEngineOptions> = {}) {
  await using server = await startChatCompletionsServer(answers);
  const pauses: number[] = [];
  const engine = createChatEngine({
    baseUrl: server.baseUrl,
    model: "m",
    env: { KEY: "sk-4711-4711" },
    random: () => 0,
    clock: {
      now: () => 0,
      sleep: async (ms) => void pauses.push(ms),
      after: () => () => {},
    },
    ...options,
  });
  const asked = await engine
    .complete(request)
    .catch((error: unknown) => error as Error & { code?: string; retryable?: boolean });
  await engine.close();
  return { asked, pauses, requests: server.requests };
}

describe("a request", () => {
  test("has the conversation, the tools and the sampling parameters that differ from the defaults", async () => {
    const { requests } = await ask(["Done."]);
    expect(requests[0]?.path).toBe("/v1/chat/completions");
    expect(requests[0]?.headers["authorization"]).toBeUndefined();
    expect(requests[0]?.body).toEqual({
      model: "m",
      messages: [
        { role: "system", content: "You switch the lamp." },
        { role: "user", content: "Lamp on, please." },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            {
              extra_content: "c2ln",
              id: "call_0",
              type: "function",
              function: { name: "switch", arguments: "{}" },
            },
            ...[
              ["call_1", "{broken"],
              ["call_2", "[NaN]"],
            ].map(([id, text]) => ({
              id,
              type: "function",
              function: {
                name: "switch",
                arguments: JSON.stringify({ malformed_arguments: text }),
              },
            })),
          ],
        },
        { role: "tool", tool_call_id: "call_0", content: "on" },
      ],
      tools: [
        {
          type: "function",
          function: { name: "switch", parameters: { type: "object", default: 1 } },
        },
      ],
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      max_tokens: 64,
    });
  });

  test("has the key, further members and the members that return", async () => {
    const { requests } = await ask(["Done."], {
      apiKeyEnv: "KEY",
      body: { reasoning_effort: "low", temperature: null },
      returnedMembers: ["reasoning_content", "absent"],
    });
    expect(requests[0]?.headers["authorization"]).toBe("Bearer sk-4711-4711");
    const { body } = requests[0]!;
    expect(body["reasoning_effort"]).toBe("low");
    expect("temperature" in body).toBe(false);
    const [, , assistant] = body["messages"] as object[];
    expect(assistant).toMatchObject({ reasoning_content: "hm" });
    expect(assistant).not.toHaveProperty("absent");
  });

  test.each([
    [{ messages: [] }, "Cannot add messages to requests: the engine writes it itself"],
    [
      { temperature: 1 },
      "Cannot add temperature to requests: expected temperature in its place, or null to leave it out",
    ],
  ])("never gets the further members %j", (body, message) => {
    expect(() => createChatEngine({ baseUrl: "http://127.0.0.1:1/v1", model: "m", body })).toThrow(
      new UsageError(message),
    );
  });

  test("uses the newer name of the limit once a server asks for it", async () => {
    const refused = {
      status: 400,
      body: '{"error": {"message": "Unsupported parameter: \'max_tokens\'. Use \'max_completion_tokens\' instead."}}',
    };
    const { asked, requests, pauses } = await ask([refused, "Done."]);
    expect(asked).toMatchObject({ content: "Done." });
    expect(requests[1]?.body).toMatchObject({ max_completion_tokens: 64 });
    expect(requests[1]?.body).not.toHaveProperty("max_tokens");
    expect(pauses).toEqual([]);
  });
});

describe("a failed call", () => {
  const status = (code: number, body = "{}", headers = {}) => ({ status: code, body, headers });

  test("is repeated after the pause that the server requests, or growing ones", async () => {
    const { asked, pauses } = await ask([
      status(429, "{}", { "retry-after": "7" }),
      status(503),
      { trouble: "cut" },
      status(500),
      "Done.",
    ]);
    expect(asked).toMatchObject({ content: "Done." });
    expect(pauses).toEqual([7000, 1000, 2000, 4000]);
  });

  test("is given up after the last attempt", async () => {
    const { asked, requests } = await ask([status(500), status(500)], {
      retry: { maxAttempts: 2 },
    });
    expect(asked).toMatchObject({
      code: "engine/server-error",
      retryable: true,
      message:
        "Cannot get turn lamp/test/0#0:1:0 from m: HTTP 500: {} (2 attempts), expected a completion",
    });
    expect(requests).toHaveLength(2);
  });

  test.each([
    [status(401, '{"error": {"message": "Bad key"}}'), "engine/unauthorized"],
    [status(404, '{"error": {"message": "no model m"}}'), "engine/not-found"],
    [status(429, '{"error": {"code": "insufficient_quota"}}'), "engine/budget"],
    [status(400, '{"error": {"message": "Odd"}}'), "engine/bad-request"],
    [
      status(400, '{"error": {"message": "Too long", "code": "context_length_exceeded"}}'),
      "engine/prompt-too-long",
    ],
    [
      status(400, '{"message": "This model\'s maximum context length is 4096 tokens."}'),
      "engine/prompt-too-long",
    ],
    [
      status(400, '{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}'),
      "engine/prompt-too-long",
    ],
    [
      status(400, '{"error": {"message": "No", "code": "content_filter"}}'),
      "engine/content-filter",
    ],
    [{ content: "Th", finishReason: "content_filter" }, "engine/content-filter"],
  ] as const)("of the form %j is the failure %s", async (answer, code) => {
    const { asked, requests } = await ask([answer]);
    expect(asked).toMatchObject({ code, retryable: false });
    expect(requests).toHaveLength(1);
  });
});

test("describes the model that the server lists, and warns of one that it does not list", async () => {
  const list = { data: [{ id: "m", max_model_len: 4096 }, { id: "n" }] };
  const { createServer } = await import("node:http");
  const server = createServer((_, response) => response.end(JSON.stringify(list)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`;
  const describeModel = async (model: string) => {
    const engine = createChatEngine({ baseUrl, model });
    const description = await engine.describe();
    await engine.close();
    return description;
  };
  const about = { kind: "chat", url: baseUrl };
  expect(await describeModel("m")).toEqual({ ...about, model: "m", contextLength: 4096 });
  expect(await describeModel("o")).toEqual({
    ...about,
    model: "o",
    warnings: ["the server does not list the model o; it lists m, n"],
  });
  server.close();
});

test("samples no ids, and accepts no calls after it is closed", async () => {
  const engine = createChatEngine({ baseUrl: "http://127.0.0.1:1/v1", model: "m" });
  await expect(engine.generate({} as never)).rejects.toMatchObject({ code: "engine/bad-request" });
  await engine.close();
  await expect(engine.complete(request)).rejects.toThrow(UsageError);
});
