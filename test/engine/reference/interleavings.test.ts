import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SamplingParameters } from "../../../src/engine/engine.ts";
import { blockBytesOf } from "../../../src/engine/reference/model/memory-plan.ts";
import { readDecoderShape } from "../../../src/engine/reference/model/read-decoder-shape.ts";
import type { RandomModelConfig } from "../../../src/engine/reference/index.ts";
import { writeRandomModel } from "../../../src/engine/reference/index.ts";
import type { ReferenceEngineOptions } from "../../../src/engine/reference/index.ts";
import { createReferenceEngine } from "../../../src/engine/reference/index.ts";
import type { ScoringEngine } from "../../../src/engine/reference/index.ts";

const VOCABULARY = 97;

const base: RandomModelConfig = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: VOCABULARY,
  hidden_size: 32,
  intermediate_size: 40,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 64,
  max_position_embeddings: 512,
  tie_word_embeddings: true,
};

/** The shipped policy's heads, heads that fill neither panels nor tiles, and experts. */
const models: Readonly<Record<string, RandomModelConfig>> = {
  "two heads of 64 share keys": base,
  "each head of 24 has its keys": {
    ...base,
    architectures: ["Qwen2ForCausalLM"],
    num_attention_heads: 3,
    num_key_value_heads: 3,
    head_dim: 24,
  },
  "five heads of 8 share keys": {
    ...base,
    architectures: ["Qwen3ForCausalLM"],
    num_attention_heads: 5,
    num_key_value_heads: 1,
    head_dim: 8,
    tie_word_embeddings: false,
  },
  "three of ten experts compute a token": {
    ...base,
    architectures: ["Qwen3MoeForCausalLM"],
    head_dim: 16,
    num_experts: 10,
    num_experts_per_tok: 3,
    moe_intermediate_size: 16,
  },
};

const sampling: SamplingParameters = { temperature: 0.8, topP: 0.95, seed: 11 };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-interleavings-"));
  for (const [name, config] of Object.entries(models)) {
    await writeRandomModel(path.join(folder, name), { config, seed: 5 });
  }
});
afterAll(() => rm(folder, { recursive: true }));

function start(name: string, options: Partial<ReferenceEngineOptions> = {}) {
  return createReferenceEngine({
    modelDir: path.join(folder, name),
    threads: 0,
    kvMemoryBytes: 2 ** 23,
    ...options,
  });
}

function toIds(length: number, seed: number): number[] {
  return Array.from({ length }, (_, index) => (index * index * 5 + seed * 17) % VOCABULARY);
}

interface Turn {
  readonly promptIds: readonly number[];
  readonly outputIds: readonly number[];
  readonly logprobs: readonly number[];
}

const EPISODES = Array.from({ length: 24 }, (_, index) => index);

/**
 * Plays an episode of three turns: all start with the same 90 ids, those of a group of four have
 * the same prompt, and the environment adds texts of every length from 1 to 17.
 */
async function playEpisode(engine: ScoringEngine, index: number): Promise<readonly Turn[]> {
  let promptIds = [...toIds(90, 0), ...toIds(13, Math.floor(index / 4))];
  const turns: Turn[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const { outputIds, logprobs } = await engine.generate({
      promptIds,
      sampling,
      maxNewTokens: 6 + ((index * 5 + turn) % 13),
      stopTokenIds: [3],
      requestId: `${index}-${turn}-of-it`,
      sessionId: `episode-${index}`,
    });
    turns.push({ promptIds, outputIds, logprobs });
    promptIds = [...promptIds, ...outputIds, ...toIds(1 + ((index * 7 + turn) % 17), index)];
  }
  return turns;
}

/** All at once. */
function playTogether(engine: ScoringEngine): Promise<(readonly Turn[])[]> {
  return Promise.all(EPISODES.map((index) => playEpisode(engine, index)));
}

/** The last first, a few tokens later each, among calls that are cancelled half-way. */
async function playStaggered(engine: ScoringEngine): Promise<(readonly Turn[])[]> {
  const playing = new Map<number, Promise<readonly Turn[]>>();
  const cancelled: Promise<unknown>[] = [];
  for (const index of EPISODES.toReversed()) {
    const controller = new AbortController();
    const noise = engine.generate(
      {
        promptIds: [...toIds(90, 0), ...toIds(20 + index, 50 + index)],
        sampling,
        maxNewTokens: 150,
        stopTokenIds: [],
        requestId: `noise-${index}`,
        sessionId: `noise-${index}`,
      },
      { signal: controller.signal },
    );
    cancelled.push(noise.catch((error: unknown) => error));
    playing.set(index, playEpisode(engine, index));
    await engine.score({ ids: toIds(30, index), sampling });
    controller.abort(new Error("enough"));
  }
  expect((await Promise.all(cancelled)).every((error) => error instanceof Error)).toBe(true);
  return await Promise.all(EPISODES.map((index) => playing.get(index) ?? Promise.resolve([])));
}

describe.each(Object.keys(models))("with %s", (name) => {
  test("ids and logprobs are the same in runs that interleave differently", async () => {
    const roomy = await start(name);
    const together = await playTogether(roomy);
    // From cache now.
    expect(await playTogether(roomy)).toEqual(together);
    await roomy.close();
    const kvMemoryBytes = 20 * blockBytesOf(await readDecoderShape(path.join(folder, name)));
    for (const options of [{}, { maxBatch: 5 }, { kvMemoryBytes, maxBatch: 9 }]) {
      const engine = await start(name, options);
      expect(await playStaggered(engine)).toEqual(together);
      await engine.close();
    }
  });

  test("score() gives the recorded logprobs to the bit, and groups sample different ids", async () => {
    const engine = await start(name);
    const episodes = await playTogether(engine);
    const other = await start(name);
    const scores = await Promise.all(
      episodes.flat().map(({ promptIds, outputIds }) =>
        other.score({
          ids: [...promptIds, ...outputIds],
          from: promptIds.length,
          sampling: { temperature: 0.8 },
        }),
      ),
    );
    expect(scores).toEqual(episodes.flat().map(({ logprobs }) => logprobs));
    const group = episodes.slice(0, 4).map(([turn]) => turn?.outputIds.join());
    expect(new Set(group).size).toBe(4);
    await engine.close();
    await other.close();
  });
});
