import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import { decodeRagged } from "../../columns/ragged-rows.ts";
import type { GenerateRequest, Generation } from "../engine.ts";
import { joinGenerations } from "../join-generations.ts";
import { hasBuiltWorker } from "./built-worker.fixture.ts";
import { blockBytesOf } from "./model/memory-plan.ts";
import { readDecoderShape } from "./model/read-decoder-shape.ts";
import type { RandomModelConfig } from "./random-model.ts";
import { writeRandomModel } from "./random-model.ts";
import type { ReferenceEngineOptions } from "./reference-engine.ts";
import { createReferenceEngine } from "./reference-engine.ts";

const config: RandomModelConfig = {
  architectures: ["Qwen3MoeForCausalLM"],
  vocab_size: 101,
  hidden_size: 32,
  intermediate_size: 40,
  num_hidden_layers: 3,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 512,
  tie_word_embeddings: true,
  num_experts: 8,
  num_experts_per_tok: 2,
  moe_intermediate_size: 24,
  norm_topk_prob: true,
  mlp_only_layers: [1],
};
const ROUTED = { layerCount: 3, perToken: 2, expertCount: 8 };
const ROW_BYTES = 6;
const SPECS: ColumnSpecs = {
  routedExperts: ROUTED,
  keptTokens: { maxCount: 9 },
  topLogprobs: { count: 4 },
};

let folder: string;
/** The expected result of each request of `BATCH`, sampled alone and without cache. */
let alone: readonly Sampled[];
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-columns-"));
  await writeRandomModel(path.join(folder, "model"), { config, seed: 1 });
  await writeRandomModel(path.join(folder, "next"), { config, seed: 2 });
  const results = [];
  for (const request of BATCH) {
    const engine = await start();
    results.push(toSampled(await engine.generate(request)));
    await engine.close();
  }
  alone = results;
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
    sampling: { seed: 17, temperature: 0.8, topK: 9, topP: 0.9 },
    maxNewTokens: 5 + (index % 3) * 20,
    stopTokenIds: [],
    columns: { specs: SPECS, knownRows: (index % 4) * 10 },
    requestId: `r${index}`,
    sessionId: `s${index}`,
    ...changes,
  };
}

const BATCH = Array.from({ length: 16 }, (_, index) => toRequest(index));

type Sampled = ReturnType<typeof toSampled>;

/** The part of a generation that depends only on the request. */
function toSampled({ outputIds, logprobs, finish, columns }: Generation) {
  return { outputIds, logprobs, finish, columns };
}

interface WithColumns {
  readonly columns?: Generation["columns"] | undefined;
}

/** Returns the only part of a column. */
function partOf({ columns }: WithColumns, name: keyof ColumnSpecs) {
  const parts = columns?.[name] ?? [];
  expect(parts).toHaveLength(1);
  return { ...parts[0]!, bytes: parts[0]!.bytes! };
}

function rowsOf(generation: WithColumns, name: "keptTokens" | "topLogprobs") {
  const { bytes, rows } = partOf(generation, name);
  const hasLogprobs = name === "topLogprobs";
  const { counts, ids, logprobs = new Float32Array() } = decodeRagged(bytes, { rows, hasLogprobs });
  let end = 0;
  return Array.from(counts, (count) => {
    const start = end;
    end += count;
    return { ids: [...ids.subarray(start, end)], logprobs: [...logprobs.subarray(start, end)] };
  });
}

describe("columns", () => {
  test("have the same bytes alone, in a batch, from cache, and in a small cache", async () => {
    const engine = await start();
    for (let round = 0; round < 2; round++) {
      const together = await Promise.all(BATCH.map((request) => engine.generate(request)));
      expect(together.map(toSampled)).toEqual(alone);
      const cached = together.map(({ cachedTokenCount }) => cachedTokenCount ?? 0);
      if (round === 1) expect(Math.min(...cached)).toBe(32);
    }
    await engine.close();
    const blockBytes = blockBytesOf(await readDecoderShape(path.join(folder, "model")));
    for (const options of [{ kvMemoryBytes: 9 * blockBytes }, { maxBatch: 3 }]) {
      const other = await start(options);
      const together = await Promise.all(BATCH.map((request) => other.generate(request)));
      expect(together.map(toSampled)).toEqual(alone);
      await other.close();
    }
  });

  test.skipIf(!hasBuiltWorker)("have the same bytes in worker threads", async () => {
    const engine = await start({ threads: 2 });
    const together = await Promise.all(BATCH.map((request) => engine.generate(request)));
    expect(together.map(toSampled)).toEqual(alone);
    await engine.close();
  });

  test("change neither ids nor, without kept tokens, logprobs", async () => {
    const engine = await start();
    for (const request of BATCH.slice(0, 4)) {
      const { columns: _, ...plain } = request;
      const { outputIds, logprobs, columns } = await engine.generate(plain);
      expect(columns).toBeUndefined();
      const specs = { routedExperts: ROUTED, topLogprobs: { count: 2 } };
      const routed = await engine.generate({ ...plain, columns: { specs, knownRows: 0 } });
      expect(routed).toMatchObject({ outputIds, logprobs });
      const kept = { specs: { keptTokens: { maxCount: 9 } }, knownRows: 0 };
      expect(await engine.generate({ ...plain, columns: kept })).toMatchObject({ outputIds });
    }
    await engine.close();
  });

  test("of a turn that is cut short are the start of the complete ones", async () => {
    const engine = await start({ policyVersion: "3" });
    const request = toRequest(2, { maxNewTokens: 300 });
    const cut = new AbortController();
    const short = await engine.generate(request, {
      cutShort: cut.signal,
      onTokens: () => cut.abort(),
    });
    const { length } = short.outputIds;
    expect(length).toBeGreaterThan(0);
    expect(length).toBeLessThan(300);
    const complete = await engine.generate({ ...request, maxNewTokens: length });
    expect(short.columns).toEqual(complete.columns);
    expect(partOf(short, "routedExperts").policyVersion).toBe("3");
    await engine.close();
  });

  test("of a turn that is cut short before its first id are absent", async () => {
    const engine = await start();
    const generation = await engine.generate(toRequest(0), { cutShort: AbortSignal.abort() });
    expect(generation.outputIds).toEqual([]);
    expect(generation.columns).toBeUndefined();
    await engine.close();
  });

  test("are those of the new weights after loadWeights(), under its version", async () => {
    const fresh = await start({ modelDir: path.join(folder, "next"), policyVersion: "1" });
    const expected = await fresh.generate(toRequest(0));
    await fresh.close();
    const engine = await start({ policyVersion: "0" });
    const before = await engine.generate(toRequest(0));
    expect(partOf(before, "keptTokens").policyVersion).toBe("0");
    await engine.loadWeights(path.join(folder, "next"), "1");
    const after = await engine.generate(toRequest(0));
    expect(after.columns).toEqual(expected.columns);
    expect(after.columns).not.toEqual(before.columns);
    await engine.close();
  });
});

test("a turn that continues with new weights has a part of each version, without a gap", async () => {
  const engine = await start({ policyVersion: "0" });
  const request = toRequest(3, {
    columns: { specs: SPECS, knownRows: 0 },
    maxNewTokens: 60,
  });
  const cut = new AbortController();
  const first = await engine.generate(request, {
    cutShort: cut.signal,
    onTokens: () => cut.abort(),
  });
  await engine.loadWeights(path.join(folder, "next"), "1");
  const promptIds = [...request.promptIds, ...first.outputIds];
  const columns = { specs: SPECS, knownRows: promptIds.length - 1 };
  const second = await engine.generate({ ...request, promptIds, columns, maxNewTokens: 7 });
  const joined = joinGenerations(first, second);
  const places = (name: keyof ColumnSpecs) =>
    joined.columns![name]!.map(({ from, rows, policyVersion }) => [policyVersion, from, rows]);
  const [promptCount, sampledCount] = [request.promptIds.length, first.outputIds.length];
  expect(places("routedExperts")).toEqual([
    ["0", 0, promptCount + sampledCount - 1],
    ["1", promptCount + sampledCount - 1, 7],
  ]);
  for (const name of ["keptTokens", "topLogprobs"] as const) {
    expect(places(name)).toEqual([
      ["0", promptCount, sampledCount],
      ["1", promptCount + sampledCount, 7],
    ]);
  }
  await engine.close();
});

describe("routedExperts", () => {
  test("has different experts of each token in layers with experts, and zeros in the dense layer", () => {
    const routes = partOf(alone[0]!, "routedExperts");
    expect(routes).toMatchObject({ from: 0, rows: 41 + 5 - 1, size: 45 * ROW_BYTES });
    const seen = new Set<number>();
    for (const sampled of alone) {
      const { bytes } = partOf(sampled, "routedExperts");
      for (let at = 0; at < bytes.length; at += ROW_BYTES) {
        const [first, second, ...others] = [...bytes.subarray(at, at + ROW_BYTES)];
        expect(others.slice(0, 2)).toEqual([0, 0]);
        expect(first).not.toBe(second);
        expect(others[2]).not.toBe(others[3]);
        seen.add(first!).add(second!);
      }
    }
    expect([...seen].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("has the rows that are not known, to the last but one token", async () => {
    const engine = await start();
    const promptCount = toRequest(1).promptIds.length;
    const all = await routesFrom(0);
    expect(all).toHaveLength((promptCount + 25 - 1) * ROW_BYTES);
    for (const knownRows of [1, 17, promptCount - 1, promptCount]) {
      expect(await routesFrom(knownRows)).toEqual(all.subarray(knownRows * ROW_BYTES));
    }
    const columns = { specs: { routedExperts: ROUTED }, knownRows: promptCount };
    const last = await engine.generate(toRequest(1, { columns, maxNewTokens: 1 }));
    expect(last.columns).toEqual({ routedExperts: [] });
    await engine.close();

    async function routesFrom(knownRows: number) {
      const specs = { routedExperts: ROUTED };
      const generation = await engine.generate(toRequest(1, { columns: { specs, knownRows } }));
      const { from, rows, size, bytes } = partOf(generation, "routedExperts");
      expect({ from, size }).toEqual({ from: knownRows, size: rows * ROW_BYTES });
      return bytes;
    }
  });

  test("is the same if a row's ids are computed again as a prompt", async () => {
    const engine = await start();
    const columns = { specs: { routedExperts: ROUTED }, knownRows: 0 };
    const { promptIds } = toRequest(4);
    const turn = await engine.generate(toRequest(4, { columns }));
    await engine.close();
    const other = await start();
    const rowIds = [...promptIds, ...turn.outputIds];
    const again = await other.generate(
      toRequest(5, { promptIds: rowIds, columns, maxNewTokens: 1 }),
    );
    const routes = partOf(again, "routedExperts");
    expect(routes.rows).toBe(rowIds.length);
    expect(routes.bytes.subarray(0, -ROW_BYTES)).toEqual(partOf(turn, "routedExperts").bytes);
    await other.close();
  });
});

describe("keptTokens", () => {
  test("has the ids that were kept, the most probable first, and logprobs are over them", () => {
    for (const [index, sampled] of alone.entries()) {
      const { from, rows } = partOf(sampled, "keptTokens");
      expect(from).toBe(BATCH[index]!.promptIds.length);
      expect(rows).toBe(sampled.outputIds.length);
      const tops = rowsOf(sampled, "topLogprobs");
      for (const [at, { ids }] of rowsOf(sampled, "keptTokens").entries()) {
        expect(ids).toContain(sampled.outputIds[at]);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.length).toBeLessThanOrEqual(9);
        expect(tops[at]!.ids).toEqual(ids.slice(0, 4));
      }
    }
    const counts = alone.flatMap((each) => rowsOf(each, "keptTokens").map(({ ids }) => ids.length));
    // Both top-k and top-p decide.
    expect(Math.max(...counts)).toBe(9);
    expect(Math.min(...counts)).toBe(1);
  });

  test("has probabilities that add up to 1", async () => {
    const engine = await start();
    const columns = {
      specs: { keptTokens: { maxCount: 9 }, topLogprobs: { count: 9 } },
      knownRows: 0,
    };
    const generation = await engine.generate(toRequest(0, { columns }));
    for (const [at, { ids, logprobs }] of rowsOf(generation, "topLogprobs").entries()) {
      const sum = logprobs.reduce((total, logprob) => total + Math.exp(logprob), 0);
      expect(sum).toBeCloseTo(1, 6);
      expect(logprobs).toEqual(logprobs.toSorted((a, b) => b - a));
      expect(logprobs[ids.indexOf(generation.outputIds[at]!)]).toBe(generation.logprobs[at]);
    }
    await engine.close();
  });

  test("has the drawn id alone at temperature 0, with the logprob 0", async () => {
    const engine = await start();
    const generation = await engine.generate(toRequest(0, { sampling: { temperature: 0 } }));
    const { outputIds, logprobs } = generation;
    expect(rowsOf(generation, "keptTokens").map(({ ids }) => ids)).toEqual(
      outputIds.map((id) => [id]),
    );
    expect(logprobs).toEqual(outputIds.map(() => 0));
    expect(rowsOf(generation, "topLogprobs")).toEqual(
      outputIds.map((id) => ({ ids: [id], logprobs: [0] })),
    );
    await engine.close();
  });
});

describe("topLogprobs", () => {
  test("has the best ids of the distribution that the reported logprobs are of", async () => {
    const engine = await start();
    const columns = { specs: { topLogprobs: { count: 100 } }, knownRows: 0 };
    const sampling = { seed: 3, temperature: 0.7, topK: 5 };
    const request = toRequest(0, { columns, sampling, maxNewTokens: 2 });
    const generation = await engine.generate(request);
    const rows = rowsOf(generation, "topLogprobs");
    for (const [at, { ids, logprobs }] of rows.entries()) {
      const before = [...request.promptIds, ...generation.outputIds.slice(0, at)];
      const scores = await Promise.all(
        Array.from({ length: 101 }, async (_, id) => {
          const score = { ids: [...before, id], from: before.length, sampling };
          return { id, logprob: (await engine.score(score))[0]! };
        }),
      );
      const best = scores.toSorted((a, b) => b.logprob - a.logprob).slice(0, 100);
      expect(logprobs).toEqual(best.map(({ logprob }) => logprob));
      expect(ids).toEqual(best.map(({ id }) => id));
      expect(logprobs[ids.indexOf(generation.outputIds[at]!)]).toBe(generation.logprobs[at]);
    }
    await engine.close();
  });
});

test("scoreTop() gives the scores of score(), and the best ids in each place", async () => {
  const engine = await start();
  const request = { ids: [3, 1, 4, 1, 5], from: 2, sampling: { temperature: 1 } };
  const { logprobs, tops } = await engine.scoreTop({ ...request, topCount: 4 });
  expect(logprobs).toEqual(await engine.score(request));
  const { counts, ids, logprobs: found } = decodeRagged(tops, { rows: 3, hasLogprobs: true });
  expect([...counts]).toEqual([4, 4, 4]);
  for (let row = 0; row < 3; row++) {
    const before = request.ids.slice(0, 2 + row);
    const scores = await Promise.all(
      Array.from({ length: 101 }, async (_, id) => {
        const one = { ids: [...before, id], from: before.length, sampling: {} };
        return { id, logprob: (await engine.score(one))[0]! };
      }),
    );
    const best = scores.toSorted((a, b) => b.logprob - a.logprob).slice(0, 4);
    expect([...ids.subarray(4 * row, 4 * row + 4)]).toEqual(best.map(({ id }) => id));
    expect([...found!.subarray(4 * row, 4 * row + 4)]).toEqual(best.map(({ logprob }) => logprob));
  }
  await expect(engine.scoreTop({ ...request, topCount: 101 })).rejects.toMatchObject({
    code: "engine/bad-request",
    message: "Cannot score: topCount is 101, expected a whole number, 1 to 100",
  });
  expect(await engine.scoreTop({ ...request, from: 5, topCount: 4 })).toEqual({
    logprobs: [],
    tops: new Uint8Array(),
  });
  await engine.close();
});

test("describe() lists the columns of a model with experts", async () => {
  const engine = await start();
  expect((await engine.describe()).columns).toEqual(["routedExperts", "keptTokens", "topLogprobs"]);
  await engine.close();
});

test("an engine without experts refuses `routedExperts`", async () => {
  const modelDir = path.join(folder, "dense");
  await writeRandomModel(modelDir, { config: { ...config, architectures: ["Qwen3ForCausalLM"] } });
  const engine = await start({ modelDir });
  await expect(engine.generate(toRequest(0))).rejects.toMatchObject({
    code: "engine/bad-request",
    message:
      "Cannot sample: columns has routedExperts, expected at most keptTokens, topLogprobs: " +
      "this engine or its model has no other",
  });
  const { routedExperts: _, ...specs } = SPECS;
  const generation = await engine.generate(toRequest(0, { columns: { specs, knownRows: 0 } }));
  expect(Object.keys(generation.columns!)).toEqual(["keptTokens", "topLogprobs"]);
  await engine.close();
});
