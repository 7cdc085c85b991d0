import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RandomModelConfig } from "../random-model.ts";
import { writeRandomModel } from "../random-model.ts";
import { createReferenceEngine } from "../reference-engine.ts";
import { createSharedMemory } from "../wasm/web-assembly.ts";
import { loadWeights, panelElement } from "./load-weights.ts";
import { planMemory } from "./memory-plan.ts";
import { readDecoderShape } from "./read-decoder-shape.ts";
import { readTensorDirectory } from "./tensor-directory.ts";

const config: RandomModelConfig = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: 11,
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 8,
  max_position_embeddings: 64,
  tie_word_embeddings: false,
};

interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-weights-"));
  await writeRandomModel(folder, { config, seed: 3 });
});
afterEach(() => rm(folder, { recursive: true }));

async function readTensors(): Promise<Map<string, Tensor>> {
  const bytes = await readFile(path.join(folder, "model.safetensors"));
  const headerBytes = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.subarray(8, 8 + headerBytes).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  return new Map(
    Object.entries(header).map(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [start, end],
        },
      ]) => {
        const data = bytes.subarray(8 + headerBytes + start, 8 + headerBytes + end);
        return [name, { dtype, shape, data }];
      },
    ),
  );
}

async function writeTensors(
  tensors: Iterable<readonly [string, Tensor]>,
  file = "model.safetensors",
): Promise<void> {
  const all = [...tensors];
  let end = 0;
  const header = Object.fromEntries(
    all.map(([name, { dtype, shape, data }]) => {
      const start = end;
      end += data.byteLength;
      return [name, { dtype, shape, data_offsets: [start, end] }];
    }),
  );
  const text = Buffer.from(JSON.stringify({ __metadata__: { format: "pt" }, ...header }));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  await writeFile(path.join(folder, file), [size, text, ...all.map(([, { data }]) => data)]);
}

async function score(): Promise<readonly number[]> {
  const engine = await createReferenceEngine({
    modelDir: folder,
    threads: 0,
    kvMemoryBytes: 2 ** 20,
  });
  const scores = await engine.score({ ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], sampling: {} });
  await engine.close();
  return scores;
}

/** Truncates floats to their upper halves, which all three formats can represent. */
function toUpperHalves({ shape, data }: Tensor): { single: Tensor; brain: Tensor } {
  const units = new Uint16Array(Uint8Array.from(data).buffer).map((unit, index) =>
    index % 2 === 0 ? 0 : unit,
  );
  const upper = units.filter((_, index) => index % 2 === 1);
  return {
    single: { dtype: "F32", shape, data: new Uint8Array(units.buffer) },
    brain: { dtype: "BF16", shape, data: new Uint8Array(upper.buffer) },
  };
}

describe("weights", () => {
  test("of a matrix that is read in pieces are placed correctly", async () => {
    // More than the 262,144 floats of a piece, which ends within a row.
    const [vocabulary, hidden] = [5_500, 48];
    await writeRandomModel(folder, {
      config: { ...config, vocab_size: vocabulary, hidden_size: hidden },
    });
    const shape = await readDecoderShape(folder);
    const size = { threadCount: 1, slotCount: 1, prefillRowCount: 16, keyValueBytes: 2 ** 20 };
    const { pages, weights } = planMemory(shape, size);
    const memory = createSharedMemory(pages);
    await loadWeights(await readTensorDirectory(folder), { shape, weights, memory });
    const floats = new Float32Array(memory.buffer);
    const start = weights.embedding.weights / 4;
    const found = Float32Array.from({ length: vocabulary * hidden }, (_, index) => {
      const place = { output: Math.floor(index / hidden), input: index % hidden };
      return floats[panelElement(start, { inputSize: hidden, ...place })] ?? NaN;
    });
    const data = (await readTensors()).get("model.embed_tokens.weight")?.data ?? new Uint8Array();
    expect(Buffer.from(found.buffer).equals(data)).toBe(true);
  });

  test("mean the same in single precision and in BF16", async () => {
    const halves = [...(await readTensors())].map(
      ([name, tensor]) => [name, toUpperHalves(tensor)] as const,
    );
    await writeTensors(halves.map(([name, { single }]) => [name, single] as const));
    const scores = await score();
    await writeTensors(halves.map(([name, { brain }]) => [name, brain] as const));
    expect(await score()).toEqual(scores);
  });

  test("may be spread over files that an index lists", async () => {
    const scores = await score();
    const tensors = [...(await readTensors())];
    await rm(path.join(folder, "model.safetensors"));
    const parts = [tensors.slice(0, 5), tensors.slice(5)];
    const weightMap: Record<string, string> = {};
    for (const [index, part] of parts.entries()) {
      const file = `model-0000${index + 1}-of-00002.safetensors`;
      await writeTensors(part, file);
      for (const [name] of part) weightMap[name] = file;
    }
    const index = path.join(folder, "model.safetensors.index.json");
    await writeFile(index, JSON.stringify({ metadata: {}, weight_map: weightMap }));
    expect(await score()).toEqual(scores);
    await rm(path.join(folder, "model-00002-of-00002.safetensors"));
    await expect(score()).rejects.toThrow(
      /model-00002-of-00002\.safetensors is missing, which model\.safetensors\.index\.json names/,
    );
    // An old index of another weights format.
    await writeTensors(tensors);
    expect(await score()).toEqual(scores);
    await writeFile(index, JSON.stringify({ weight_map: { a: "../other.safetensors" } }));
    await expect(score()).rejects.toThrow(/weight_map in model\.safetensors\.index\.json/);
  });

  test("that are missing are named", async () => {
    const tensors = await readTensors();
    tensors.delete("model.layers.0.mlp.up_proj.weight");
    await writeTensors(tensors);
    await expect(score()).rejects.toThrow(
      /tensor model\.layers\.0\.mlp\.up_proj\.weight is missing, expected one of shape \[24, 16\]/,
    );
  });

  test("of an expert that are missing or too many are named", async () => {
    const mixture = { ...config, architectures: ["Qwen3MoeForCausalLM"] } as const;
    await expect(writeRandomModel(folder, { config: mixture })).rejects.toThrow(
      /num_experts or moe_intermediate_size is missing/,
    );
    const experts = { num_experts: 2, num_experts_per_tok: 1, moe_intermediate_size: 8 };
    await writeRandomModel(folder, { config: { ...mixture, ...experts } });
    const tensors = await readTensors();
    const last = tensors.get("model.layers.0.mlp.experts.1.down_proj.weight")!;
    await writeTensors([...tensors, ["model.layers.0.mlp.experts.2.down_proj.weight", last]]);
    await expect(score()).rejects.toThrow(/experts\.2\.down_proj\.weight, which no Qwen3Moe/);
    tensors.delete("model.layers.0.mlp.experts.1.down_proj.weight");
    await writeTensors(tensors);
    await expect(score()).rejects.toThrow(
      /experts\.1\.down_proj\.weight is missing, expected one of shape \[16, 8\]/,
    );
  });

  test("of another shape are named", async () => {
    const tensors = await readTensors();
    const norm = tensors.get("model.norm.weight");
    tensors.set("model.norm.weight", { ...norm!, shape: [4, 4] });
    await writeTensors(tensors);
    await expect(score()).rejects.toThrow(
      /model\.norm\.weight in .* shape \[4, 4\], expected \[16\]/,
    );
  });

  test("that the architecture lacks are refused, except angles and a tied head", async () => {
    const tensors = await readTensors();
    const norm = tensors.get("model.norm.weight")!;
    tensors.set("model.layers.0.self_attn.rotary_emb.inv_freq", norm);
    await writeTensors(tensors);
    await score();
    tensors.set("model.layers.0.self_attn.o_proj.bias", norm);
    await writeTensors(tensors);
    await expect(score()).rejects.toThrow(/o_proj\.bias, which no LlamaForCausalLM .* has; serve/);
  });

  test("in an unsupported format are named", async () => {
    const tensors = await readTensors();
    tensors.set("model.norm.weight", { ...tensors.get("model.norm.weight")!, dtype: "I8" });
    await writeTensors(tensors);
    await expect(score()).rejects.toThrow(/model\.norm\.weight as "I8", not as F32, F16 or BF16/);
  });

  test("that are not a file, incomplete, or not in safetensors format are named", async () => {
    const file = path.join(folder, "model.safetensors");
    const bytes = await readFile(file);
    await writeFile(file, bytes.subarray(0, -1));
    await expect(score()).rejects.toThrow(/with offsets that do not fit/);
    await writeFile(file, bytes.subarray(0, 100));
    await expect(score()).rejects.toThrow(/model\.safetensors has no header/);
    const noJson = Buffer.concat([bytes.subarray(0, 8), Buffer.alloc(bytes.length - 8)]);
    await writeFile(file, noJson);
    await expect(score()).rejects.toThrow(/has a header that is not JSON/);
    await rm(file);
    await expect(score()).rejects.toThrow(/model\.safetensors cannot be opened/);
  });
});
