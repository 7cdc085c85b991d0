import { setMaxListeners } from "node:events";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import { createReferenceEngine } from "../../src/engine/reference/index.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { playEpisode } from "../../src/episode/play-episode.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";
import { createStorefront } from "./storefront.ts";
import { createStorefrontUser } from "./storefront-user.ts";

const modelDir = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));
const storefront = createStorefront();
const { signal } = new AbortController();
// Every episode listens to it.
setMaxListeners(0, signal);

describe("the shipped policy", () => {
  let renderer: Renderer;
  let engine: Awaited<ReturnType<typeof createReferenceEngine>>;
  beforeAll(async () => {
    renderer = await createRenderer({ modelDir });
    engine = await createReferenceEngine({ modelDir, threads: 0, kvMemoryBytes: 2 ** 26 });
  });
  afterAll(async () => engine.close());

  async function play(index: number, sampleIndex: number) {
    const task = storefront.task("test", index);
    const seed = 10 * index + sampleIndex;
    const rolloutId = `${task.id}#${sampleIndex}`;
    return await playEpisode(
      { task, rolloutId, groupId: task.id, sampleIndex, seed },
      {
        environment: storefront,
        user: createStorefrontUser(),
        engine,
        renderer,
        agent: createToolCallingAgent({
          parser: findToolCallParser("qwen25"),
          toolUsePolicy: toolUsePolicies.many,
        }),
        sampling: { temperature: 1, seed: 0 },
        limits: { ...defaultLimits, maxTokensPerTurn: 128 },
        now: () => 0,
      },
      { signal },
    );
  }

  test("takes at most 8 MB", async () => {
    const sizes = (await readdir(modelDir)).map((name) => stat(path.join(modelDir, name)));
    const total = (await Promise.all(sizes)).reduce((sum, { size }) => sum + size, 0);
    expect(total).toBeLessThan(8_000_000);
  });

  test("has a template that never rewrites history, and a vocabulary that loses no text", async () => {
    expect(renderer.card).toMatchObject({ parser: "qwen25", deltaBase: "short", warnings: [] });
    const text = "Straße 12\n\t“quoted” 東京 \u0000 <tool_call> 00123";
    const { codec } = renderer;
    expect(await codec.decode(await codec.encode(text))).toBe(text);
  });

  test("gives numbers the same ids at any place", async () => {
    const { codec } = renderer;
    for (const word of ["4821", "40417", "561"]) {
      const own = await codec.encode(word);
      for (const [before, after] of [
        ["is ", "."],
        ['{"order": "', '"}'],
        ["<|im_start|>user\n", ","],
      ]) {
        const ids = await codec.encode(`${before}${word}${after}`);
        expect(ids.join(" ")).toContain(own.join(" "));
      }
    }
  });

  test("solves some tasks and fails some, in words and names that it never learned", async () => {
    const places = Array.from({ length: 24 }, (_, place) => place);
    const episodes = await Promise.all(
      places.map((place) => play(Math.floor(place / 2), place % 2)),
    );
    expect(episodes.map(({ outcome }) => outcome)).not.toContain("failed");
    const rewards = episodes.map(({ reward }) => reward);
    expect(new Set(rewards)).toEqual(new Set([0, 1]));
  });

  test("plays the same episode again from the same seed", async () => {
    const [first, second] = [await play(1, 0), await play(1, 0)];
    expect(second.segments).toEqual(first.segments);
  });

  test("scores its samples with the logprobs of sampling", async () => {
    const { segments } = await play(2, 0);
    const [segment] = segments;
    if (segment === undefined) throw new Error("expected a segment");
    const ids = segment.tokenIds;
    const scores = await engine.score({ ids, sampling: { temperature: 1 } }, { signal });
    for (const [index, isSampled] of segment.lossMask.entries()) {
      if (isSampled === 1) expect(scores[index - 1]).toBeCloseTo(segment.logprobs[index] ?? 1, 5);
    }
  });
});
