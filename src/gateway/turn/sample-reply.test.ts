import { describe, expect, test } from "vitest";
import type { Engine, GenerateRequest } from "../../engine/engine.ts";
import { systemClock } from "../../async/clock.ts";
import { CallWatch } from "../../episode/turn/call-watch.ts";
import { preparedEngine } from "../../episode/lamp-episode.fixture.ts";
import { RolloutError } from "../../errors.ts";
import { characterIds, createCharacterRenderer } from "../../testing/character-renderer.ts";
import { sampleReply, type ReplyToSample, type SampledReply } from "./sample-reply.ts";

/**
 * Samples a reply with the stop text "END" from an engine that reports all tokens, and ends its
 * call by `endBy` when it is stopped.
 */
async function sampleUntilStop(endBy: (cutShort: AbortSignal) => unknown): Promise<SampledReply> {
  const tokenIds = characterIds("Hello END").slice(0, -1);
  const engine: Engine = {
    ...preparedEngine([]),
    async generate(_, options) {
      const { cutShort, onTokens } = options!;
      const cut = new Promise((resolve) => cutShort!.addEventListener("abort", resolve));
      onTokens!({ tokenIds, logprobs: tokenIds.map((_id, index) => -index) });
      await cut;
      throw endBy(cutShort!);
    },
  };
  return await sampleReply({
    engine,
    renderer: createCharacterRenderer(),
    request: {
      promptIds: [1],
      sampling: {},
      maxNewTokens: 99,
      requestId: "r",
      sessionId: "s",
      stopTokenIds: createCharacterRenderer().stopTokenIds,
    },
    read: {
      formats: { parseOptions: {} },
      tools: [],
      stops: ["END"],
      reasoningOpened: false,
      ids: { mint: (prefix) => prefix, callPrefix: "call_" },
    },
    onEvents: () => {},
    watch: new CallWatch(new AbortController().signal, systemClock),
    engineTimeoutMs: 5000,
  });
}

describe("a constrained turn", () => {
  /** Returns true if the engine receives an `onTokens` callback. */
  async function isListenedTo(
    own: Partial<Pick<ReplyToSample, "isStreamed">> & { stops?: readonly string[] },
    held: Partial<GenerateRequest> = { constraint: { type: "json-schema", schema: {} } },
  ): Promise<boolean> {
    const { stops = [], ...more } = own;
    const prepared = preparedEngine([{ outputIds: characterIds("{}") }]);
    let listens = false;
    const engine: Engine = {
      ...prepared,
      async generate(request, options) {
        listens = options?.onTokens !== undefined;
        return await prepared.generate(request, options);
      },
    };
    const { parts } = await sampleReply({
      engine,
      renderer: createCharacterRenderer(),
      request: {
        promptIds: [1],
        sampling: {},
        maxNewTokens: 99,
        requestId: "r",
        sessionId: "s",
        stopTokenIds: createCharacterRenderer().stopTokenIds,
        ...held,
      },
      read: {
        formats: { parseOptions: {} },
        tools: [],
        stops,
        reasoningOpened: false,
        ids: { mint: (prefix) => prefix, callPrefix: "call_" },
      },
      onEvents: () => {},
      watch: new CallWatch(new AbortController().signal, systemClock),
      engineTimeoutMs: 5000,
      ...more,
    });
    expect(parts.map(({ text }) => text)).toEqual(["{}"]);
    return listens;
  }

  test("reports tokens only if a client reads them, so that it can otherwise be sampled again", async () => {
    expect(await isListenedTo({ isStreamed: false })).toBe(false);
    expect(await isListenedTo({ isStreamed: true })).toBe(true);
    expect(await isListenedTo({ isStreamed: false, stops: ["END"] })).toBe(true);
    expect(await isListenedTo({ isStreamed: false }, {})).toBe(true);
  });
});

describe("an engine that is stopped after a stop text", () => {
  test.each<[what: string, endBy: (cutShort: AbortSignal) => unknown]>([
    ["its reason", (cutShort) => cutShort.reason],
    ["an AbortError", () => new DOMException("This operation was aborted", "AbortError")],
  ])("returns the tokens reported before its call ended by %s", async (_, endBy) => {
    const { generation, parts, finish } = await sampleUntilStop(endBy);
    const outputIds = characterIds("Hello END").slice(0, -1);
    expect(generation).toMatchObject({
      outputIds,
      logprobs: outputIds.map((_id, index) => -index),
      pieces: [{ requestId: "r", tokenCount: 9, policyVersion: "", finish: "abort" }],
    });
    expect(parts.map(({ type, text }) => [type, text])).toEqual([["text", "Hello "]]);
    expect(finish).toEqual({ type: "stop-text", text: "END" });
  });

  test("fails if the call ended for another reason", async () => {
    const gone = new RolloutError("engine/unreachable", "gone");
    await expect(sampleUntilStop(() => gone)).rejects.toBe(gone);
  });
});
