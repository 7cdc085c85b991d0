import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GenerateRequest, Generation } from "../engine.ts";
import { builtWorker, hasBuiltWorker } from "./built-worker.fixture.ts";
import type { RandomModelConfig } from "./random-model.ts";
import { writeRandomModel } from "./random-model.ts";
import type { ReferenceEngineOptions } from "./reference-engine.ts";
import { createReferenceEngine } from "./reference-engine.ts";

const config: RandomModelConfig = {
  architectures: ["Qwen3ForCausalLM"],
  vocab_size: 101,
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 512,
  tie_word_embeddings: true,
};
/** Bytes of keys and values of 16 positions. */
const BLOCK_BYTES = 2 * 2 * 2 * 16 * 16 * 4;

let folder: string;
/** The expected result of each request of `BATCH`, sampled alone and without cache. */
let alone: readonly ReturnType<typeof sampled>[];
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-reference-"));
  await writeRandomModel(path.join(folder, "model"), { config, seed: 1 });
  alone = await generateAlone(BATCH);
});
afterAll(() => rm(folder, { recursive: true }));

function start(options: Partial<ReferenceEngineOptions> = {}) {
  const modelDir = path.join(folder, "model");
  return createReferenceEngine({ modelDir, threads: 0, kvMemoryBytes: 2 ** 22, ...options });
}

function prompt(length: number, seed: number): number[] {
  return Array.from({ length }, (_, index) => (index * index * 7 + index * 13 + seed * 31) % 101);
}

function toRequest(index: number, changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptIds: [...prompt(40, 0), ...prompt(1 + (index % 5) * 11, index)],
    sampling: { seed: 17 },
    maxNewTokens: 12 + (index % 3) * 20,
    stopTokenIds: [],
    requestId: `r${index}`,
    sessionId: `s${index}`,
    ...changes,
  };
}

/** The part of a generation that depends only on the request. */
function sampled({ outputIds, logprobs, finish }: Generation) {
  return { outputIds, logprobs, finish };
}

const BATCH = Array.from({ length: 32 }, (_, index) => toRequest(index));

async function generateAlone(requests: readonly GenerateRequest[]) {
  const results = [];
  for (const request of requests) {
    // A new engine for each request, so that nothing is cached.
    const engine = await start();
    results.push(sampled(await engine.generate(request)));
    await engine.close();
  }
  return results;
}

describe("generate()", () => {
  test("samples the same bytes alone, in a batch of 32, and from cached prefixes", async () => {
    const engine = await start();
    const together = await Promise.all(BATCH.map((request) => engine.generate(request)));
    expect(together.map(sampled)).toEqual(alone);
    const again = await Promise.all(BATCH.map((request) => engine.generate(request)));
    expect(again.map(sampled)).toEqual(alone);
    expect(Math.min(...again.map(({ cachedTokenCount }) => cachedTokenCount ?? 0))).toBe(32);
    await engine.close();
  });

  test("samples the same bytes if the cache is too small for all requests", async () => {
    for (const blockCount of [9, 14, 40]) {
      const engine = await start({ kvMemoryBytes: blockCount * BLOCK_BYTES });
      const together = await Promise.all(BATCH.map((request) => engine.generate(request)));
      expect(together.map(sampled)).toEqual(alone);
      await engine.close();
    }
  });

  test("samples the same bytes with any batch size", async () => {
    for (const maxBatch of [1, 3]) {
      const engine = await start({ maxBatch });
      const together = await Promise.all(BATCH.slice(0, 8).map((each) => engine.generate(each)));
      expect(together.map(sampled)).toEqual(alone.slice(0, 8));
      await engine.close();
    }
  });

  test("computes the shared prompt of a group once, and the turns of an episode once", async () => {
    const engine = await start();
    const promptIds = prompt(100, 3);
    const group = await Promise.all(
      [0, 1, 2, 3].map((index) =>
        engine.generate(toRequest(index, { promptIds, maxNewTokens: 30 })),
      ),
    );
    expect(group.map(({ cachedTokenCount }) => cachedTokenCount)).toEqual([0, 96, 96, 96]);
    const outputs = new Set(group.map(({ outputIds }) => outputIds.join()));
    expect(outputs.size).toBe(4);
    const first = group[2]?.outputIds ?? [];
    const next = [...promptIds, ...first, ...prompt(9, 5)];
    const turn = await engine.generate(toRequest(2, { promptIds: next }));
    // All full blocks up to the last id that the first turn computed.
    expect(turn.cachedTokenCount).toBe(Math.floor((100 + 29) / 16) * 16);
    await engine.close();
  });

  test("draws by seed and session, and differently each time without a seed", async () => {
    const engine = await start();
    const draw = async (changes: Partial<GenerateRequest>) =>
      (await engine.generate(toRequest(0, { maxNewTokens: 30, ...changes }))).outputIds.join();
    const first = await draw({});
    expect(await draw({ requestId: "another" })).toBe(first);
    expect(await draw({ sampling: { seed: 18 } })).not.toBe(first);
    expect(await draw({ sessionId: "another" })).not.toBe(first);
    expect(await draw({ sampling: {} })).not.toBe(await draw({ sampling: {} }));
    await engine.close();
  });

  test("takes the most likely id at temperature 0, with its logprob at temperature 1", async () => {
    const engine = await start();
    const request = toRequest(0, { sampling: { temperature: 0 } });
    const { outputIds, logprobs } = await engine.generate(request);
    for (const [index, logprob] of logprobs.entries()) {
      const before = [...request.promptIds, ...outputIds.slice(0, index)];
      const all = await Promise.all(
        Array.from({ length: 101 }, (_, id) =>
          engine.score({ ids: [...before, id], from: before.length, sampling: {} }),
        ),
      );
      const scores = all.map(([score]) => score ?? NaN);
      expect(Math.max(...scores)).toBe(logprob);
      expect(scores.indexOf(logprob)).toBe(outputIds[index]);
      const total = scores.reduce((sum, score) => sum + Math.exp(score), 0);
      expect(total).toBeCloseTo(1, 6);
      if (index === 2) break;
    }
    await engine.close();
  });

  test("applies top-k, top-p and min-p, with logprobs before them", async () => {
    const engine = await start();
    const greedy = await engine.generate(toRequest(0, { sampling: { temperature: 0 } }));
    for (const filter of [{ topK: 1 }, { topP: 1e-6 }, { minP: 1 }]) {
      const filtered = await engine.generate(toRequest(0, { sampling: { seed: 1, ...filter } }));
      expect(sampled(filtered)).toEqual(sampled(greedy));
    }
    await engine.close();
  });

  test("ends on the request's and the model's stop ids, and returns them", async () => {
    const engine = await start();
    const free = await engine.generate(toRequest(0));
    const matched = free.outputIds[5] ?? -1;
    const end = free.outputIds.indexOf(matched) + 1;
    const stopped = await engine.generate(toRequest(0, { stopTokenIds: [999, matched] }));
    expect(sampled(stopped)).toEqual({
      outputIds: free.outputIds.slice(0, end),
      logprobs: free.logprobs.slice(0, end),
      finish: { type: "stop", matched },
    });
    await engine.close();
    const modelDir = path.join(folder, "stopping");
    await writeRandomModel(modelDir, { config: { ...config, eos_token_id: 100 }, seed: 1 });
    const generationConfig = JSON.stringify({ eos_token_id: [matched] });
    await writeFile(path.join(modelDir, "generation_config.json"), generationConfig);
    const stopping = await start({ modelDir });
    expect(sampled(await stopping.generate(toRequest(0)))).toEqual(sampled(stopped));
    await stopping.close();
  });

  test("ends with `length` after the requested number of tokens", async () => {
    const engine = await start();
    const generation = await engine.generate(toRequest(0, { maxNewTokens: 7 }));
    expect(generation.outputIds).toHaveLength(7);
    expect(generation.finish).toEqual({ type: "length" });
    await engine.close();
  });

  test("continues with other calls if one is cancelled", async () => {
    const engine = await start();
    const expected = sampled(await engine.generate(toRequest(1)));
    const controller = new AbortController();
    const calls = [
      engine.generate(toRequest(0, { maxNewTokens: 400 }), { signal: controller.signal }),
      engine.generate(toRequest(1)),
    ] as const;
    const cancelled = expect(calls[0]).rejects.toThrow("enough");
    controller.abort(new Error("enough"));
    await cancelled;
    expect(sampled(await calls[1])).toEqual(expected);
    await engine.close();
  });

  test("fails with `engine/nan` if a weight is not a number", async () => {
    const modelDir = path.join(folder, "broken");
    await writeRandomModel(modelDir, { config, seed: 1 });
    const file = path.join(modelDir, "model.safetensors");
    const bytes = await readFile(file);
    bytes.writeFloatLE(NaN, bytes.length - 4);
    await writeFile(file, bytes);
    const engine = await start({ modelDir });
    await expect(engine.generate(toRequest(0))).rejects.toMatchObject({ code: "engine/nan" });
    await expect(engine.score({ ids: [1, 2], sampling: {} })).rejects.toMatchObject({
      code: "engine/nan",
    });
    await engine.close();
  });
});

describe("score()", () => {
  test("returns the bits that were sampled, from cache or not", async () => {
    const engine = await start();
    const sampling = { seed: 4, temperature: 0.8 };
    const request = toRequest(3, { sampling, maxNewTokens: 50 });
    const { outputIds, logprobs } = await engine.generate(request);
    const ids = [...request.promptIds, ...outputIds];
    const from = request.promptIds.length;
    expect(await engine.score({ ids, from, sampling })).toEqual(logprobs);
    const fresh = await start();
    const all = await fresh.score({ ids, sampling });
    expect(all).toHaveLength(ids.length - 1);
    expect(all.slice(from - 1)).toEqual(logprobs);
    await engine.close();
    await fresh.close();
  });
});

describe("loadWeights()", () => {
  const weights = async (name: string, seed: number, changes: Partial<RandomModelConfig> = {}) => {
    const dir = path.join(folder, name);
    await writeRandomModel(dir, { config: { ...config, ...changes }, seed });
    return dir;
  };

  test("samples as an engine that was started with the new weights, without old cache entries", async () => {
    const step = await weights("step-1", 2);
    const fresh = await start({ modelDir: step });
    const expected = await Promise.all(BATCH.slice(0, 4).map((each) => fresh.generate(each)));
    await fresh.close();
    const engine = await start({ policyVersion: "0" });
    const [before] = BATCH;
    await engine.generate(before!);
    await engine.loadWeights(step, "1");
    const after = await Promise.all(BATCH.slice(0, 4).map((each) => engine.generate(each)));
    expect(after.map(sampled)).toEqual(expected.map(sampled));
    expect(after[0]!.pieces[0]!.policyVersion).toBe("1");
    expect(after[0]!.cachedTokenCount).toBe(0);
    expect(await engine.describe()).toMatchObject({ model: step, policyVersion: "1" });
    await engine.loadWeights(path.join(folder, "model"), "2");
    expect(sampled(await engine.generate(before!))).toEqual(alone[0]);
    await engine.close();
  });

  test("keeps the previous weights if a folder has none, those of another model, or an incomplete file", async () => {
    const short = await weights("short", 3);
    const file = path.join(short, "model.safetensors");
    const complete = await readFile(file);
    await writeFile(file, complete.subarray(0, complete.length - 4000));
    const engine = await start();
    for (const [dir, message] of [
      [path.join(folder, "nowhere"), "nowhere"],
      [await weights("wider", 4, { hidden_size: 48 }), "describes another model than"],
      [short, "short"],
    ] as const) {
      await expect(engine.loadWeights(dir)).rejects.toThrow(message);
      expect(sampled(await engine.generate(BATCH[0]!))).toEqual(alone[0]);
    }
    await engine.close();
  });

  test("refuses while a call is pending, and makes calls during the load wait", async () => {
    const step = await weights("step-2", 2);
    const engine = await start();
    const call = engine.generate(BATCH[0]!);
    await expect(engine.loadWeights(step)).rejects.toThrow("1 calls are pending");
    expect(sampled(await call)).toEqual(alone[0]);
    const loaded = engine.loadWeights(step, "2");
    const [meanwhile] = await Promise.all([engine.generate(BATCH[0]!), loaded]);
    expect(meanwhile.pieces[0]!.policyVersion).toBe("2");
    await engine.close();
  });
});

describe("describe()", () => {
  test("names the model, and the context length that the cache allows", async () => {
    const engine = await start({ kvMemoryBytes: 10.5 * BLOCK_BYTES, policyVersion: "7" });
    expect(await engine.describe()).toEqual({
      kind: "reference",
      model: path.join(folder, "model"),
      policyVersion: "7",
      logprobConvention: "tempered",
      contextLength: 160,
      columns: ["keptTokens", "topLogprobs"],
    });
    const longest = { promptIds: prompt(100, 1), maxNewTokens: 60 };
    const generation = await engine.generate(toRequest(0, longest));
    expect(generation.outputIds).toHaveLength(60);
    expect(generation.pieces[0]?.policyVersion).toBe("7");
    await expect(
      engine.generate(toRequest(0, { ...longest, maxNewTokens: 61 })),
    ).rejects.toMatchObject({ code: "engine/prompt-too-long" });
    await engine.close();
  });
});

describe.skipIf(!hasBuiltWorker)("in worker threads", () => {
  test("the same bytes are sampled as in this thread", async () => {
    for (const threads of [1, 3]) {
      const engine = await start({ threads });
      const together = await Promise.all(BATCH.map((request) => engine.generate(request)));
      expect(together.map(sampled)).toEqual(alone);
      await engine.close();
    }
  });

  test("pending calls end when the engine is closed", async () => {
    const engine = await start({ threads: 1 });
    const call = engine.generate(toRequest(0, { maxNewTokens: 400 }));
    const ended = expect(call).rejects.toMatchObject({ code: "engine/unreachable" });
    await engine.close();
    await ended;
  });

  test("neither idle threads nor an open engine keep the process alive", async () => {
    const module = new URL("../reference-engine.js", builtWorker);
    const script = `
      import { createReferenceEngine } from ${JSON.stringify(module.href)};
      const modelDir = ${JSON.stringify(path.join(folder, "model"))};
      const engine = await createReferenceEngine({ modelDir, threads: 2 });
      console.log((await engine.score({ ids: [1, 2, 3], sampling: {} })).length);`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "--eval", script],
      { timeout: 600_000 },
    );
    expect(stdout).toBe("2\n");
  });
});

describe("createReferenceEngine()", () => {
  test("refuses invalid threads, batches and memory", async () => {
    await expect(start({ threads: -1 })).rejects.toThrow(/-1 as threads/);
    await expect(start({ maxBatch: 0 })).rejects.toThrow(/0 as maxBatch/);
    await expect(start({ kvMemoryBytes: 1_000 })).rejects.toThrow(/1000 as kvMemoryBytes: a block/);
    await expect(start({ kvMemoryBytes: 2 ** 32 })).rejects.toThrow(/at most 4096; lower/);
  });
});

test("a turn that is cut short is the start of the complete one", async () => {
  const engine = await start();
  const cut = new AbortController();
  const [request] = BATCH;
  const complete = alone[0]!;
  const call = engine.generate({ ...request!, maxNewTokens: 300 }, { cutShort: cut.signal });
  // The other call runs on the same thread: when it is done, this one has as many tokens.
  await engine.generate({ ...BATCH[0]!, requestId: "beside", maxNewTokens: 4 });
  cut.abort();
  const { outputIds, logprobs, finish } = await call;
  expect(finish).toEqual({ type: "length" });
  expect(outputIds.length).toBeGreaterThan(0);
  expect(outputIds.length).toBeLessThan(300);
  const length = Math.min(outputIds.length, complete.outputIds.length);
  expect(outputIds.slice(0, length)).toEqual(complete.outputIds.slice(0, length));
  expect(logprobs.slice(0, length)).toEqual(complete.logprobs.slice(0, length));
  await engine.close();
});

test("`onTokens` receives each token, and the sampled ids are the same", async () => {
  const engine = await start();
  const streamed: { readonly ids: number[]; readonly logprobs: number[]; count: number }[] = [];
  const heard = await Promise.all(
    BATCH.map(async (request, index) => {
      const one = (streamed[index] = { ids: [] as number[], logprobs: [] as number[], count: 0 });
      const generation = await engine.generate(request, {
        onTokens({ tokenIds, logprobs }) {
          one.count += 1;
          one.ids.push(...tokenIds);
          one.logprobs.push(...logprobs);
        },
      });
      return sampled(generation);
    }),
  );
  expect(heard).toEqual(alone);
  for (const [index, { outputIds, logprobs }] of alone.entries()) {
    expect(streamed[index]).toEqual({ ids: outputIds, logprobs, count: outputIds.length });
  }
  await engine.close();
});
