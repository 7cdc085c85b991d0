import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { GenerateRequest } from "../../../src/engine/engine.ts";
import type { RandomModelConfig } from "../../../src/engine/reference/index.ts";
import { writeRandomModel } from "../../../src/engine/reference/index.ts";
import type { ReferenceEngineOptions } from "../../../src/engine/reference/index.ts";
import { createReferenceEngine } from "../../../src/engine/reference/index.ts";

const config: RandomModelConfig = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: 61,
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 16,
  max_position_embeddings: 256,
  tie_word_embeddings: true,
};
/** Keys and values of 16 positions. */
const BLOCK_BYTES = 2 * 16 * 16 * 4;
/** The cache for one sequence as long as the context, and no more. */
const ONE_SEQUENCE = 16 * BLOCK_BYTES;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-limits-"));
  await writeRandomModel(folder, { config, seed: 2 });
});
afterAll(() => rm(folder, { recursive: true }));

function start(options: Partial<ReferenceEngineOptions> = {}) {
  return createReferenceEngine({
    modelDir: folder,
    threads: 0,
    kvMemoryBytes: 2 ** 20,
    ...options,
  });
}

function toRequest(index: number, changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptIds: Array.from({ length: 60 + (index % 40) }, (_, at) => (at * at + index * 7) % 61),
    sampling: { seed: 1 },
    maxNewTokens: 40,
    stopTokenIds: [],
    requestId: `request-${index}`,
    sessionId: `session-${index}`,
    ...changes,
  };
}

const LONGEST = {
  promptIds: Array.from({ length: 200 }, (_, at) => at % 61),
  maxNewTokens: 56,
} as const;

test("many more calls than the batch size all finish, with a cache for one sequence", async () => {
  const [small, roomy] = [
    await start({ maxBatch: 4, kvMemoryBytes: ONE_SEQUENCE }),
    await start({ maxBatch: 200 }),
  ];
  const play = (engine: typeof small) =>
    Promise.all(Array.from({ length: 100 }, (_, index) => engine.generate(toRequest(index))));
  const [waited, together] = [await play(small), await play(roomy)];
  expect(waited.map(({ outputIds }) => outputIds)).toEqual(
    together.map(({ outputIds }) => outputIds),
  );
  expect(waited.map(({ logprobs }) => logprobs)).toEqual(together.map(({ logprobs }) => logprobs));
  await small.close();
  await roomy.close();
});

test("the longest sequence fits a cache of its size, even when others have filled it", async () => {
  const engine = await start({ kvMemoryBytes: ONE_SEQUENCE });
  const calls = await Promise.all([
    ...Array.from({ length: 10 }, (_, index) => engine.generate(toRequest(index))),
    engine.generate(toRequest(10, LONGEST)),
    engine.generate(toRequest(11)),
  ]);
  expect(calls.map(({ outputIds }) => outputIds.length)).toEqual([
    ...Array.from({ length: 10 }, () => 40),
    56,
    40,
  ]);
  await engine.close();
});

test("a sequence that cannot fit the cache is refused as `engine/prompt-too-long`", async () => {
  const engine = await start({ kvMemoryBytes: ONE_SEQUENCE - 1 });
  expect((await engine.describe()).contextLength).toBe(240);
  await expect(engine.generate(toRequest(0, LONGEST))).rejects.toMatchObject({
    code: "engine/prompt-too-long",
    message: expect.stringContaining("at most 240 together"),
  });
  const ids = Array.from({ length: 241 }, () => 1);
  await expect(engine.score({ ids, sampling: {} })).rejects.toMatchObject({
    code: "engine/prompt-too-long",
  });
  expect((await engine.generate(toRequest(1))).outputIds).toHaveLength(40);
  await engine.close();
});

test("a prompt as long as the model's context is refused as `engine/prompt-too-long`", async () => {
  const engine = await start();
  const promptIds = Array.from({ length: 256 }, () => 1);
  await expect(engine.generate(toRequest(0, { promptIds, maxNewTokens: 1 }))).rejects.toMatchObject(
    { code: "engine/prompt-too-long" },
  );
  await engine.close();
});

test("calls cancelled at any time give back all that they held", async () => {
  const engine = await start({ maxBatch: 3, kvMemoryBytes: ONE_SEQUENCE });
  const expected = await engine.generate(toRequest(0, LONGEST));
  for (let round = 0; round < 8; round++) {
    const controllers = Array.from({ length: 6 }, () => new AbortController());
    const calls = controllers.map(({ signal }, index) =>
      engine.generate(toRequest(round * 6 + index, { maxNewTokens: 150 }), { signal }),
    );
    const ended = Promise.allSettled(calls);
    for (const [index, controller] of controllers.entries()) {
      // Some steps of the others, so that it is cancelled in the queue, in its prompt, or sampling.
      if (index % 2 === 1) await new Promise(setImmediate);
      controller.abort(new Error("enough"));
    }
    expect((await ended).map(({ status }) => status)).toEqual(calls.map(() => "rejected"));
    // Needs the complete cache and a place in the batch, whether or not the cache still has old
    // blocks.
    const { outputIds, logprobs } = await engine.generate(toRequest(0, LONGEST));
    expect({ outputIds, logprobs }).toEqual({
      outputIds: expected.outputIds,
      logprobs: expected.logprobs,
    });
  }
  await engine.close();
});

test("close() ends calls in work and in the queue, and later ones, as `engine/unreachable`", async () => {
  const engine = await start({ maxBatch: 2 });
  const calls = Array.from({ length: 5 }, (_, index) =>
    engine.generate(toRequest(index, { maxNewTokens: 150 })),
  );
  const scoring = engine.score({ ids: LONGEST.promptIds, sampling: {} });
  const ended = Promise.allSettled([...calls, scoring]);
  await new Promise(setImmediate);
  await engine.close();
  for (const result of await ended) {
    expect(result).toMatchObject({ status: "rejected", reason: { code: "engine/unreachable" } });
  }
  await expect(engine.generate(toRequest(0))).rejects.toMatchObject({ code: "engine/unreachable" });
  await engine.close();
});
