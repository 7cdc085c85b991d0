import { describe, expect, test } from "vitest";
import { preparedEngine } from "../../episode/lamp-episode.fixture.ts";
import { characterIds, createCharacterRenderer } from "../../testing/character-renderer.ts";
import { createGateway, inProcessUrl } from "../create-gateway.ts";
import { countReasoningTokens } from "./reply-tokens.ts";

/** Returns the usage that a client of Responses reads after a turn with this text. */
async function usageOf(text: string, isStreamed: boolean): Promise<unknown> {
  const base = createCharacterRenderer();
  const renderer = { ...base, card: { ...base.card, reasoningParser: "qwen3" } };
  const engine = preparedEngine([{ outputIds: characterIds(text) }]);
  await using gateway = await createGateway({ engine, renderer });
  const { token } = await gateway.openSession({ taskId: "t" });
  const response = await gateway.fetch(`${inProcessUrl}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: "policy", input: "Go", stream: isStreamed }),
  });
  const body = await response.text();
  const last = isStreamed ? body.trim().split("\n").at(-1)!.slice("data: ".length) : body;
  const reply = JSON.parse(last) as { readonly usage?: unknown; readonly response?: unknown };
  return (isStreamed ? (reply.response as typeof reply) : reply).usage;
}

describe("the usage of Responses", () => {
  test.each([false, true])(
    "counts the tokens of the reasoning (streamed: %s)",
    async (streamed) => {
      // Each character is a token, as are the line ends of the reasoning and the end of the turn.
      expect(await usageOf("<think>\nlong thought\n</think>\n\nhello", streamed)).toEqual({
        input_tokens: 20,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 37,
        output_tokens_details: { reasoning_tokens: 14 },
        total_tokens: 57,
      });
    },
  );

  test("has no reasoning in a turn without any", async () => {
    expect(await usageOf("hello", false)).toMatchObject({
      output_tokens: 6,
      output_tokens_details: { reasoning_tokens: 0 },
    });
  });
});

describe("countReasoningTokens()", () => {
  const count = async (text: string, ...thoughts: readonly string[]) =>
    await countReasoningTokens(createCharacterRenderer(), {
      generation: {
        outputIds: characterIds(text),
        logprobs: characterIds(text).map(() => -1),
        finish: { type: "stop" },
        pieces: [],
        discarded: [],
      },
      parts: thoughts.map((thought) => {
        return { type: "reasoning", id: "rs_1", signature: "tw", text: thought };
      }),
      finish: { type: "stop" },
      attemptCounts: {},
      isFormatError: false,
      writtenIds: [],
      leftOutCallCount: 0,
    });

  test("counts each of several thoughts at its own place", async () => {
    expect(await count("<think>ab</think>x<think>abc</think>y", "ab", "abc")).toBe(5);
  });

  test("encodes a thought whose text differs from the tokens' bytes", async () => {
    expect(await count("<think>ab</think>", "a\uFFFDb")).toBe(3);
  });
});
