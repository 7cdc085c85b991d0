import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GenerateRequest, ScoreRequest } from "../../src/engine/engine.ts";
import type { LlamaEngineOptions } from "../../src/engine/llama/llama-engine.ts";
import { createLlamaEngine } from "../../src/engine/llama/llama-engine.ts";
import { importLlamaLibrary, installCommand } from "../../src/engine/llama/llama-library.ts";
import type { RandomModelConfig } from "../../src/engine/reference/index.ts";
import { writeRandomModel } from "../../src/engine/reference/index.ts";
import { createReferenceEngine } from "../../src/engine/reference/index.ts";
import { UsageError } from "../../src/errors.ts";
import { writeGguf } from "../support/make-gguf.ts";
import { qwen3Folder } from "../support/qwen3-model.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";

const VOCABULARY_SIZE = 400;
const config: RandomModelConfig = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: VOCABULARY_SIZE,
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 1024,
  tie_word_embeddings: false,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
};

/** The reason why the tests of this file do not run. */
async function findObstacle(): Promise<string | undefined> {
  try {
    await importLlamaLibrary();
    return undefined;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return `node-llama-cpp is not installed: ${installCommand()}`;
  }
}

const obstacle = await findObstacle();
if (obstacle !== undefined) console.info(`skips the llama engine on a model: ${obstacle}`);

describe.skipIf(obstacle !== undefined)("the llama engine on a model", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "turnwright-llama-"));
    await writeRandomModel(folder, { config, seed: 5 });
    await writeGguf(path.join(folder, "model.gguf"), { modelDir: folder });
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function start(options: Partial<LlamaEngineOptions> = {}) {
    const file = path.join(folder, "model.gguf");
    const engine = await createLlamaEngine({ file, threads: 1, contextLength: 512, ...options });
    return { engine, [Symbol.asyncDispose]: () => engine.close() };
  }

  /** The same weights, computed by other code. */
  async function scoreElsewhere(request: ScoreRequest): Promise<readonly number[]> {
    const engine = await createReferenceEngine({ modelDir: folder, threads: 0 });
    try {
      return await engine.score(request);
    } finally {
      await engine.close();
    }
  }

  function largestDifference(a: readonly number[], b: readonly number[]): number {
    expect(a.length).toBe(b.length);
    return Math.max(...a.map((value, index) => Math.abs(value - (b[index] ?? Number.NaN))));
  }

  test.each([
    { temperature: 1 },
    { temperature: 0.6 },
    { temperature: 1.7 },
    { temperature: 1, topK: 5 },
    { temperature: 0.8, topP: 0.7 },
    { temperature: 1.3, topP: 0.999, minP: 0.01 },
    { temperature: 0 },
  ])("reports logprobs of the tempered softmax, before filters: %o", async (sampling) => {
    await using started = await start();
    const request = toRequest({ sampling: { ...sampling, seed: 3 } });
    const { outputIds, logprobs } = await started.engine.generate(request);
    expect(outputIds).toHaveLength(60);
    const ids = [...request.promptIds, ...outputIds];
    const from = request.promptIds.length;
    const elsewhere = await scoreElsewhere({ ids, from, sampling });
    expect(largestDifference(logprobs, elsewhere)).toBeLessThan(1e-4);
    const again = await started.engine.score({ ids, from, sampling });
    expect(largestDifference(logprobs, again)).toBeLessThan(1e-4);
  });

  test("keeps keys and values in half precision on request", async () => {
    await using started = await start({ cachePrecision: "half" });
    const ids = prompt(200, 4);
    const scores = await started.engine.score({ ids, sampling: {} });
    const difference = largestDifference(scores, await scoreElsewhere({ ids, sampling: {} }));
    expect(difference).toBeGreaterThan(1e-4);
    expect(difference).toBeLessThan(0.1);
  });

  test("draws ids with their probability", async () => {
    await using started = await start();
    const { engine } = started;
    const promptIds = prompt(6, 1);
    const drawn = new Map<number, number>();
    const count = 2_000;
    for (let seed = 0; seed < count; seed++) {
      const { outputIds } = await engine.generate(
        toRequest({ promptIds, sampling: { seed, temperature: 0.5 }, maxNewTokens: 1 }),
      );
      drawn.set(outputIds[0]!, (drawn.get(outputIds[0]!) ?? 0) + 1);
    }
    for (const [id, times] of drawn) {
      if (times < 40) continue;
      const [logprob] = await engine.score({
        ids: [...promptIds, id],
        from: promptIds.length,
        sampling: { temperature: 0.5 },
      });
      const likely = Math.exp(logprob!);
      const deviation = Math.sqrt(count * likely * (1 - likely));
      expect(Math.abs(times - count * likely)).toBeLessThan(4.5 * deviation);
    }
  });

  test("repeats itself with a seed, and differs with another, and between sessions", async () => {
    await using started = await start({ sequences: 1 });
    const { engine } = started;
    const first = await engine.generate(toRequest());
    expect((await engine.generate(toRequest())).outputIds).toEqual(first.outputIds);
    const other = await engine.generate(toRequest({ sampling: { seed: 4 } }));
    expect(other.outputIds).not.toEqual(first.outputIds);
    const elsewhere = await engine.generate(toRequest({ sessionId: "another" }));
    expect(elsewhere.outputIds).not.toEqual(first.outputIds);
  });

  test("computes a later turn from the cache of an earlier one", async () => {
    await using started = await start();
    const first = await started.engine.generate(toRequest());
    expect(first.cachedTokenCount).toBe(0);
    const promptIds = [...prompt(40, 0), ...first.outputIds, ...prompt(9, 3)];
    const request = toRequest({ promptIds, requestId: "request-1" });
    const second = await started.engine.generate(request);
    // The last sampled id was not computed yet.
    expect(second.cachedTokenCount).toBe(99);
    const ids = [...promptIds, ...second.outputIds];
    const scores = await scoreElsewhere({ ids, from: promptIds.length, sampling: {} });
    expect(largestDifference(second.logprobs, scores)).toBeLessThan(1e-4);
  });

  test("plays more sessions than it has sequences, each with its own logprobs", async () => {
    await using started = await start({ sequences: 3 });
    const sessions = Array.from({ length: 11 }, (_, index) => index);
    const requests = sessions.map((index) =>
      toRequest({ promptIds: prompt(20 + 17 * index, index), sessionId: `session-${index}` }),
    );
    const generations = await Promise.all(
      requests.map((request) => started.engine.generate(request)),
    );
    for (const [index, { outputIds, logprobs }] of generations.entries()) {
      const { promptIds } = requests[index]!;
      const ids = [...promptIds, ...outputIds];
      const scores = await scoreElsewhere({ ids, from: promptIds.length, sampling: {} });
      expect(largestDifference(logprobs, scores)).toBeLessThan(1e-4);
    }
  });

  test("fills the context to the last token, and takes no more", async () => {
    await using started = await start({ contextLength: 256 });
    const { engine } = started;
    expect((await engine.describe()).contextLength).toBe(256);
    const promptIds = prompt(200, 2);
    const full = await engine.generate(toRequest({ promptIds, maxNewTokens: 56 }));
    expect(full.outputIds).toHaveLength(56);
    const scores = await scoreElsewhere({
      ids: [...promptIds, ...full.outputIds],
      from: 200,
      sampling: {},
    });
    expect(largestDifference(full.logprobs, scores)).toBeLessThan(1e-4);
    await expect(engine.generate(toRequest({ promptIds, maxNewTokens: 57 }))).rejects.toMatchObject(
      { code: "engine/prompt-too-long" },
    );
    const ids = prompt(256, 2);
    expect(await engine.score({ ids, sampling: {} })).toHaveLength(255);
    await expect(engine.score({ ids: prompt(257, 2), sampling: {} })).rejects.toMatchObject({
      code: "engine/prompt-too-long",
    });
  });

  test("ends a turn at a stop id of the request, and at the model's own", async () => {
    await using started = await start();
    const { engine } = started;
    const { outputIds } = await engine.generate(toRequest());
    const matched = outputIds[9]!;
    const stopped = await engine.generate(toRequest({ stopTokenIds: [matched] }));
    const count = outputIds.indexOf(matched) + 1;
    expect(stopped.outputIds).toEqual(outputIds.slice(0, count));
    expect(stopped.finish).toEqual({ type: "stop", matched });
    const ends = await Promise.all(
      Array.from({ length: 20 }, (_, seed) =>
        engine.generate(toRequest({ sampling: { seed, temperature: 50 }, maxNewTokens: 200 })),
      ),
    );
    const ended = ends.filter(({ finish }) => finish.type === "stop");
    expect(ended.length).toBeGreaterThan(0);
    for (const { finish, outputIds: ids } of ended) {
      expect(finish).toEqual({ type: "stop", matched: 2 });
      expect(ids.indexOf(2)).toBe(ids.length - 1);
    }
  });

  test("refuses ids outside the vocabulary, which llama.cpp would not survive", async () => {
    await using started = await start();
    const promptIds = [5, VOCABULARY_SIZE];
    await expect(started.engine.generate(toRequest({ promptIds }))).rejects.toMatchObject({
      code: "engine/bad-request",
      message: expect.stringContaining(`promptIds[1] is ${VOCABULARY_SIZE}`),
    });
  });

  test("continues after a turn that was cancelled during sampling", async () => {
    await using started = await start({ sequences: 1 });
    const { engine } = started;
    const controller = new AbortController();
    const call = engine.generate(toRequest({ maxNewTokens: 450 }), { signal: controller.signal });
    const queued = engine.generate(toRequest({ sessionId: "queued" }));
    const reason = new Error("the episode is over");
    setImmediate(() => controller.abort(reason));
    await expect(call).rejects.toBe(reason);
    const { outputIds, logprobs } = await queued;
    const ids = [...prompt(40, 0), ...outputIds];
    const scores = await scoreElsewhere({ ids, from: 40, sampling: {} });
    expect(largestDifference(logprobs, scores)).toBeLessThan(1e-4);
  });

  test("ends running calls when it is closed", async () => {
    await using started = await start();
    const call = started.engine.generate(toRequest({ maxNewTokens: 450 }));
    const ended = expect(call).rejects.toMatchObject({ code: "engine/unreachable" });
    await started.engine.close();
    await ended;
    await expect(started.engine.describe()).rejects.toMatchObject({ code: "engine/unreachable" });
  });

  test("describes itself", async () => {
    await using started = await start();
    expect(await started.engine.describe()).toMatchObject({
      kind: "llama",
      model: path.join(folder, "model.gguf"),
      engineVersion: expect.stringMatching(/^node-llama-cpp 3\.\d+\.\d+, llama\.cpp /),
      logprobConvention: "tempered",
      contextLength: 512,
    });
  });
});

describe("turnwright rollout --engine llama", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "turnwright-llama-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  function play(gguf: readonly string[], out: string) {
    return runCli([
      "rollout",
      "--split",
      "test",
      "--env",
      "storefront",
      "--user",
      "scripted",
      "--engine",
      "llama",
      ...gguf,
      "--model",
      qwen3Folder(),
      "--parser",
      "qwen25",
      "--tasks",
      "0,1",
      "--samples",
      "2",
      "--max-turns",
      "2",
      "--max-tokens-per-turn",
      "12",
      "--max-context",
      "6000",
      "--sampling-seed",
      "3",
      "--threads",
      "1",
      "--out",
      path.join(folder, out),
    ]);
  }

  test("asks for the model file", async () => {
    const { status, stderr } = await play([], "none");
    expect(stderr).toContain("Missing --gguf: the model, a GGUF file or hf:owner/repo:file");
    expect(status).toBe(2);
  });

  test("names a missing model file", async () => {
    const file = path.join(folder, "missing.gguf");
    const { status, stderr } = await play(["--gguf", file], "missing");
    expect(stderr).toContain(`Cannot read the model ${file}`);
    expect(status).toBe(2);
  });

  test.skipIf(obstacle === undefined)("says what to install", async () => {
    const file = path.join(folder, "model.gguf");
    await writeFile(file, "GGUF");
    const { status, stderr } = await play(["--gguf", file], "missing");
    expect(stderr).toContain(installCommand());
    expect(status).toBe(2);
  });

  test.skipIf(obstacle !== undefined)(
    "plays episodes with a model of Qwen's vocabulary, verifies clean, and repeats itself",
    async () => {
      const large = { ...config, vocab_size: 151_936, hidden_size: 32, head_dim: 8 };
      const context = { max_position_embeddings: 8_192, tie_word_embeddings: true };
      await writeRandomModel(folder, { config: { ...large, ...context }, seed: 5 });
      const file = path.join(folder, "model.gguf");
      await writeGguf(file, { modelDir: folder });
      const samples: unknown[] = [];
      for (const out of ["first", "second"]) {
        const { status, stderr } = await play(["--gguf", file], out);
        expect(stderr).toContain("4/4 done");
        expect(status).toBe(0);
        const samplesFile = path.join(folder, out, "samples.jsonl");
        const verified = await runCli(["verify", "--rescore", samplesFile]);
        expect(jsonLines(verified.stdout)).toMatchObject([
          {
            file: samplesFile,
            samples: 4,
            violations: [],
            rescore: { engine: "llama", skipped: [], beyondToleranceCount: 0 },
          },
        ]);
        expect(verified.status).toBe(0);
        const rows = jsonLines(await readFile(samplesFile, "utf8"));
        samples.push(rows.map(({ tokenIds }) => JSON.stringify(tokenIds)).toSorted());
      }
      expect(samples[0]).toEqual(samples[1]);
    },
  );
});

function prompt(length: number, seed: number): number[] {
  return Array.from(
    { length },
    (_, index) => 3 + ((index * index * 7 + index * 13 + seed * 31) % (VOCABULARY_SIZE - 3)),
  );
}

function toRequest(changes: Partial<GenerateRequest> = {}): GenerateRequest {
  return {
    promptIds: prompt(40, 0),
    sampling: { seed: 17 },
    maxNewTokens: 60,
    stopTokenIds: [],
    requestId: "request-0",
    sessionId: "session-0",
    ...changes,
  };
}
