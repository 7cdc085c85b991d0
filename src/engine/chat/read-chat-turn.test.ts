import { describe, expect, test } from "vitest";
import type { PostedCompletion } from "./post-completion.ts";
import { readChatTurn } from "./read-chat-turn.ts";

function read(
  message: Record<string, unknown>,
  { finishReason = "stop", ...body }: Record<string, unknown> = {},
) {
  const posted: PostedCompletion = { message, finishReason, body };
  return readChatTurn(posted);
}

const nothing = { content: "", toolCalls: [], finish: "stop" };

describe("a turn", () => {
  test("has text, calls, reasoning, usage and the model's name", () => {
    expect(
      read(
        {
          role: "assistant",
          content: null,
          refusal: null,
          reasoning_content: "The user wants light.",
          tool_calls: [
            {
              id: "call_1",
              type: "function",
              function: { name: "switch", arguments: '{"on": 1.0}' },
              extra_content: { google: { thought_signature: "c2ln" } },
            },
          ],
        },
        {
          finishReason: "tool_calls",
          model: "lamp-model-2026",
          usage: {
            prompt_tokens: 20,
            completion_tokens: 7,
            prompt_tokens_details: { cached_tokens: 16 },
          },
        },
      ),
    ).toEqual({
      content: "",
      reasoning: "The user wants light.",
      toolCalls: [
        {
          id: "call_1",
          name: "switch",
          argumentsText: '{"on": 1.0}',
          members: { extra_content: { google: { thought_signature: "c2ln" } } },
        },
      ],
      finish: "stop",
      usage: { promptTokenCount: 20, cachedTokenCount: 16, sampledTokenCount: 7 },
      model: "lamp-model-2026",
      members: { reasoning_content: "The user wants light." },
    });
  });

  test("of a server from before tools has its one call", () => {
    const older = { name: "switch", arguments: '{"on": 1}' };
    const called = { ...nothing, toolCalls: [{ name: "switch", argumentsText: '{"on": 1}' }] };
    const options = { finishReason: "function_call" };
    expect(read({ content: null, function_call: older }, options)).toEqual(called);
    expect(read({ content: null, tool_calls: [], function_call: older }, options)).toEqual(called);
    expect(read({ content: "Hi", function_call: null })).toEqual({ ...nothing, content: "Hi" });
    const calls = [{ function: older }];
    expect(read({ content: null, tool_calls: calls, function_call: older })).toEqual(called);
  });

  // Recorded from SGLang 0.5.23, without its logprobs and meta information.
  test("of SGLang is read", () => {
    expect(
      read(
        { role: "assistant", content: " Action Abd recognizes", reasoning_content: null },
        {
          finishReason: "length",
          id: "45f95f3114694f3b8af1b145945fb398",
          object: "chat.completion",
          model: "tiny-moe",
          usage: {
            prompt_tokens: 9,
            total_tokens: 12,
            completion_tokens: 3,
            prompt_tokens_details: null,
            reasoning_tokens: 0,
          },
        },
      ),
    ).toEqual({
      content: " Action Abd recognizes",
      toolCalls: [],
      finish: "length",
      usage: { promptTokenCount: 9, sampledTokenCount: 3 },
      model: "tiny-moe",
    });
  });

  test.each([
    [
      { prompt_tokens: -1, completion_tokens: 3 },
      { promptTokenCount: 0, sampledTokenCount: 3 },
    ],
    [
      { prompt_tokens: 9, completion_tokens: 1.5, prompt_tokens_details: { cached_tokens: -4 } },
      { promptTokenCount: 9, sampledTokenCount: 0 },
    ],
    [{ prompt_tokens: "9", completion_tokens: 1e300 }, undefined],
  ])("with the usage %j keeps the counts alone", (usage, expected) => {
    expect(read({ content: "Hi" }, { usage }).usage).toEqual(expected);
  });

  test.each<[Record<string, unknown>, object]>([
    [{ content: "Hi" }, { content: "Hi" }],
    [{ content: null }, {}],
    [{}, {}],
    [{ content: null, refusal: "I cannot." }, { content: "I cannot." }],
    [
      { content: [{ type: "text", text: "a" }, "b", { type: "refusal", refusal: "c" }] },
      { content: "abc" },
    ],
    [
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "redacted_thinking", data: "x" },
          { type: "text", text: "Hi" },
        ],
      },
      { content: "Hi", reasoning: "hm" },
    ],
    [
      { content: "Hi", reasoning: "hm" },
      { content: "Hi", reasoning: "hm", members: { reasoning: "hm" } },
    ],
    [
      { content: "Hi", annotations: [], audio: null },
      { content: "Hi", members: { annotations: [] } },
    ],
    [
      { tool_calls: [{ function: { name: "switch", arguments: "" } }] },
      { toolCalls: [{ name: "switch", argumentsText: "{}" }] },
    ],
    [
      { tool_calls: [{ id: "a", function: { name: "switch", arguments: { on: true } } }] },
      { toolCalls: [{ id: "a", name: "switch", argumentsText: '{"on":true}' }] },
    ],
    [
      { tool_calls: [{ id: "a", type: "custom", custom: { name: "shell", input: "ls" } }] },
      { toolCalls: [{ id: "a", name: "shell", argumentsText: "ls" }] },
    ],
    [
      { tool_calls: ["?", { id: 7 }] },
      { toolCalls: [{ argumentsText: "{}" }, { argumentsText: "{}" }] },
    ],
  ])("of the form %j is read", (message, expected) => {
    expect(read(message)).toEqual({ ...nothing, ...expected });
  });

  test.each([
    [{ content: 7 }, "content of the reply is number, expected text"],
    [
      { content: [{ type: "image_url" }] },
      'content[0] of the reply is a part of type "image_url", expected text',
    ],
    [{ tool_calls: {} }, "tool_calls of the reply is not a list"],
  ])("of the form %j is refused", (message, why) => {
    expect(() => read(message)).toThrow(
      expect.objectContaining({ kind: "bad-reply", message: why }),
    );
  });

  test("that a content filter withheld is a failure", () => {
    expect(() => read({ content: "The" }, { finishReason: "content_filter" })).toThrow(
      expect.objectContaining({ kind: "content-filter" }),
    );
  });
});
