import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GenerateRequest } from "../engine.ts";
import { type RandomModelConfig, writeRandomModel } from "./random-model.ts";
import { createReferenceEngine } from "./reference-engine.ts";
import { createReloadableEngine } from "./reloadable-engine.ts";

const config: RandomModelConfig = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: 101,
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 256,
  tie_word_embeddings: true,
};
const small = { threads: 0, kvMemoryBytes: 2 ** 20 } as const;
// Long enough for whole blocks of it to be kept for the next request.
const request: GenerateRequest = {
  promptIds: Array.from({ length: 70 }, (_, index) => (index * 7) % 101),
  sampling: { seed: 3 },
  maxNewTokens: 30,
  stopTokenIds: [],
  requestId: "r",
  sessionId: "s",
};

let folder: string;
const at = (name: string): string => path.join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-reloadable-"));
  await writeRandomModel(at("first"), { config, seed: 1 });
  await writeRandomModel(at("second"), { config, seed: 2 });
  await writeRandomModel(at("longer"), { config: { ...config, max_position_embeddings: 512 } });
});
afterAll(() => rm(folder, { recursive: true }));

/** What an engine that never had other weights samples. */
async function samplesOf(name: string) {
  const engine = await createReferenceEngine({ modelDir: at(name), ...small });
  const { outputIds, logprobs } = await engine.generate(request);
  await engine.close();
  return { outputIds, logprobs };
}

describe("createReloadableEngine()", () => {
  test("samples by the new weights alone, as if it had never had others", async () => {
    const { engine, load } = await createReloadableEngine({ modelDir: at("first"), ...small });
    const described = await engine.describe();
    const first = await engine.generate(request);
    expect(first).toMatchObject(await samplesOf("first"));
    await load(at("second"));
    const second = await engine.generate(request);
    expect(second).toMatchObject(await samplesOf("second"));
    expect(second.cachedTokenCount).toBe(0);
    expect(second.outputIds).not.toEqual(first.outputIds);
    expect(await engine.describe()).toEqual(described);
    await engine.close();
  });

  test("keeps its weights where the others cannot be used", async () => {
    const { engine, load } = await createReloadableEngine({ modelDir: at("first"), ...small });
    const before = await engine.generate(request);
    for (const [name, what] of [
      ["longer", "config.json describes another model"],
      ["missing", "config.json"],
    ] as const) {
      await expect(load(at(name))).rejects.toMatchObject({
        name: "RolloutError",
        code: "engine/bad-request",
        message: expect.stringContaining(what),
      });
    }
    const { outputIds, logprobs } = await engine.generate(request);
    expect({ outputIds, logprobs }).toEqual({
      outputIds: before.outputIds,
      logprobs: before.logprobs,
    });
    await engine.close();
  });

  test("loads nothing once it is closed, also where that happens meanwhile", async () => {
    const { engine, load } = await createReloadableEngine({ modelDir: at("first"), ...small });
    const loading = load(at("second"));
    await engine.close();
    for (const attempt of [loading, load(at("second"))]) {
      await expect(attempt).rejects.toMatchObject({ code: "engine/unreachable" });
    }
    await expect(engine.generate(request)).rejects.toMatchObject({ code: "engine/unreachable" });
  });
});
