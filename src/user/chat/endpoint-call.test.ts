import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { describe, expect, test } from "vitest";
import { startChatCompletionsServer } from "../../engine/chat/chat-completions-server.fixture.ts";
import { chatEndpointSource } from "./chat-endpoint.ts";
import { callLanguageModel } from "./language-model-call.ts";

const { signal } = new AbortController();

const replies = [
  { choices: [{ message: { role: "assistant", content: " Hi " }, finish_reason: "stop" }] },
  { choices: [{ message: { content: "a" }, finish_reason: "length" }, { message: {} }] },
  { choices: [{ message: { content: "a" }, finish_reason: "content_filter" }] },
  { choices: [{ message: { content: "a" }, finish_reason: "function_call" }] },
  { choices: [{ message: { content: "a" } }], usage: null },
  { choices: [{ message: { content: null, reasoning_content: "hm" }, finish_reason: "stop" }] },
  {
    choices: [{ message: { content: "a" }, finish_reason: null }],
    usage: { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 4 } },
  },
  { choices: [{ message: { content: "a" } }], usage: { completion_tokens: 2 } },
].map((reply) => ({ id: "1", created: 1, model: "m", object: "chat.completion", ...reply }));

test.each(replies)("sends and reads as the AI SDK's client does: %j", async (reply) => {
  const body = JSON.stringify(reply);
  const answer = { status: 200, body, headers: { "content-type": "application/json" } };
  await using server = await startChatCompletionsServer([answer, answer]);
  const { baseUrl } = server;
  const request = {
    messages: [
      { role: "system", content: "You are Ann." },
      { role: "user", content: "Hi\n" },
      { role: "assistant", content: "é" },
      { role: "user", content: "" },
    ],
    temperature: 0.5,
    maxTokens: 3,
    seed: 7,
  } as const;
  const source = chatEndpointSource({ baseUrl, model: "m" }, { env: {}, maxConcurrent: 1 });
  const sdk = createOpenAICompatible({ name: "endpoint", baseURL: baseUrl }).chatModel("m");
  const ours = await source.call(request, { signal });
  expect(ours).toEqual(await callLanguageModel(sdk, request, { signal }));
  const [asked, askedBySdk] = server.requests;
  expect([asked?.path, asked?.body]).toEqual([askedBySdk?.path, askedBySdk?.body]);
  await source.close();
});

describe("a reply's content", () => {
  async function read(message: object, reason = "stop") {
    const body = JSON.stringify({ choices: [{ message, finish_reason: reason }] });
    await using server = await startChatCompletionsServer([{ status: 200, body }]);
    const { baseUrl } = server;
    const source = chatEndpointSource({ baseUrl, model: "m" }, { env: {}, maxConcurrent: 1 });
    try {
      return await source.call({ messages: [] }, { signal });
    } finally {
      await source.close();
    }
  }

  test.each<[unknown, { text: string; instead?: string }]>([
    [[{ type: "text", text: "Hi" }], { text: "Hi" }],
    [
      [
        { type: "text", text: "Hi " },
        { type: "output_text", text: "there" },
      ],
      { text: "Hi there" },
    ],
    [["Hi"], { text: "Hi" }],
    [{ type: "text", text: "Hi" }, { text: "Hi" }],
    [
      [
        { type: "thinking", thinking: [{ type: "text", text: "PIN 4711" }] },
        { type: "text", text: "Hi" },
      ],
      { text: "Hi" },
    ],
    [
      [
        { type: "redacted_thinking", data: "x" },
        { type: "reasoning", text: "x" },
      ],
      { text: "", instead: "reasoning" },
    ],
    [[{ type: "refusal", refusal: "I can't" }], { text: "", instead: "refusal" }],
    [[], { text: "" }],
  ])("of the form %j is read", async (content, expected) => {
    expect(await read({ content })).toEqual({ ...expected, finishReason: "stop", usage: null });
  });

  test.each([
    "length",
    "max_tokens",
    "MAX_TOKENS",
    "model_length",
    "model_context_window_exceeded",
  ])("is cut if the server says %j", async (reason) => {
    expect((await read({ content: "I want" }, reason)).finishReason).toBe("length");
  });

  test.each<[object, string | undefined]>([
    [{ content: "", reasoning_content: "PIN 4711" }, "reasoning"],
    [{ content: null, reasoning: "PIN 4711" }, "reasoning"],
    [{ reasoning: "" }, undefined],
    [{ content: null, refusal: "I can't" }, "refusal"],
  ])("is empty in %j", async (message, instead) => {
    const answer = await read(message);
    expect([answer.text, answer.instead]).toEqual(["", instead]);
  });

  test.each<[unknown, string]>([
    [
      [{ type: "text", text: "Hi" }, { type: "image_url" }],
      'content[1] of the reply is a part of type "image_url"',
    ],
    [[{ type: "text" }], "content[0] of the reply is a text part without a text"],
    [[null], "content[0] of the reply is null"],
    [[["Hi"]], "content[0] of the reply is a list"],
    [7, "content of the reply is number"],
  ])("of the form %j is named and refused", async (content, is) => {
    await expect(read({ content })).rejects.toMatchObject({
      kind: "bad-reply",
      retryable: true,
      message: `${is}, expected text`,
    });
  });
});

test.each([
  [{ error: { message: "Rate limit exceeded", code: 429 } }, 429, "Rate limit exceeded"],
  [{ error: { message: "Provider failed", code: "x" }, choices: null }, 502, "Provider failed"],
  [
    {
      choices: [
        {
          message: { role: "assistant", content: "I want to ret" },
          finish_reason: "error",
          error: { code: 504, message: "Upstream died" },
        },
      ],
    },
    504,
    "Upstream died",
  ],
  [{ choices: [{ message: { content: "I w" }, finish_reason: "error" }] }, 502, "its model failed"],
])(
  "the error in a reply with the status 200, %j, is the call's",
  async (body, statusCode, message) => {
    await using server = await startChatCompletionsServer([
      { status: 200, body: JSON.stringify(body) },
    ]);
    const source = chatEndpointSource(
      { baseUrl: server.baseUrl, model: "m" },
      { env: {}, maxConcurrent: 1 },
    );
    await expect(source.call({ messages: [] }, { signal })).rejects.toMatchObject({
      statusCode,
      message,
    });
    await source.close();
  },
);

test("reports a redirect, and does not follow it", async () => {
  const location = "https://elsewhere.example/v1/chat/completions";
  const moved = { status: 308, body: "", headers: { location } };
  await using server = await startChatCompletionsServer([moved]);
  const source = chatEndpointSource(
    { baseUrl: server.baseUrl, model: "m" },
    { env: {}, maxConcurrent: 1 },
  );
  await expect(source.call({ messages: [] }, { signal })).rejects.toMatchObject({
    statusCode: 308,
    message: `moved to ${location}, which is not followed`,
  });
  expect(server.requests).toHaveLength(1);
  await source.close();
});
