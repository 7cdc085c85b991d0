import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RandomModelConfig } from "../../../src/engine/reference/index.ts";
import { writeRandomModel } from "../../../src/engine/reference/index.ts";
import { createReferenceEngine } from "../../../src/engine/reference/index.ts";

interface GoldenCase {
  readonly name: string;
  readonly config: RandomModelConfig;
  readonly seed: number;
  readonly ids: readonly number[];
  /** By temperature; `logprobs[T][i]` belongs to `ids[i + 1]`. */
  readonly logprobs: Readonly<Record<string, readonly number[]>>;
  /** The experts of each id and layer, of models that have some. */
  readonly routes?: readonly (readonly (readonly number[])[])[];
}

/** Recorded from PyTorch and transformers by `make-golden.py`. */
const golden = JSON.parse(await readFile(new URL("golden.json", import.meta.url), "utf8")) as {
  readonly cases: readonly GoldenCase[];
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-golden-"));
});
afterAll(() => rm(folder, { recursive: true }));

describe("the reference engine's logprobs are PyTorch's", () => {
  for (const [index, { name, config, seed, ids, logprobs }] of golden.cases.entries()) {
    test(name, async () => {
      const modelDir = path.join(folder, `${index}`);
      await writeRandomModel(modelDir, { config, seed });
      const engine = await createReferenceEngine({ modelDir, threads: 0, kvMemoryBytes: 2 ** 24 });
      for (const [temperature, expected] of Object.entries(logprobs)) {
        const sampling = { temperature: Number(temperature) };
        const scored = await engine.score({ ids, sampling });
        expect(scored).toHaveLength(ids.length - 1);
        const differences = scored.map((value, at) => Math.abs(value - (expected[at] ?? NaN)));
        expect(Math.max(...differences)).toBeLessThan(3e-5);
      }
      await engine.close();
    });
  }
});

describe("the reference engine's routes are transformers'", () => {
  for (const [index, { name, config, seed, ids, routes }] of golden.cases.entries()) {
    if (routes === undefined) continue;
    test(name, async () => {
      const modelDir = path.join(folder, `routes-${index}`);
      await writeRandomModel(modelDir, { config, seed });
      const engine = await createReferenceEngine({ modelDir, threads: 0, kvMemoryBytes: 2 ** 24 });
      const routedExperts = {
        layerCount: config.num_hidden_layers,
        perToken: config.num_experts_per_tok!,
        expertCount: config.num_experts!,
      };
      const { columns } = await engine.generate({
        promptIds: ids,
        sampling: {},
        maxNewTokens: 1,
        stopTokenIds: [],
        columns: { specs: { routedExperts }, knownRows: 0 },
        requestId: "routes",
        sessionId: "routes",
      });
      const [part] = columns!.routedExperts!;
      const { buffer } = part!.bytes!.slice();
      const found = config.num_experts! > 256 ? new Uint16Array(buffer) : new Uint8Array(buffer);
      expect([...found]).toEqual(routes.flat(2));
      await engine.close();
    });
  }
});
