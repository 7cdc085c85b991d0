import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../../../errors.ts";
import { readDecoderShape } from "./read-decoder-shape.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-shape-"));
});
afterAll(() => rm(folder, { recursive: true }));

const llama = {
  architectures: ["LlamaForCausalLM"],
  hidden_size: 64,
  intermediate_size: 160,
  max_position_embeddings: 2_048,
  num_attention_heads: 4,
  num_hidden_layers: 3,
  vocab_size: 1_000,
};

async function read(change: Readonly<Record<string, unknown>> = {}, generation?: object) {
  await writeFile(path.join(folder, "config.json"), JSON.stringify({ ...llama, ...change }));
  await writeFile(path.join(folder, "generation_config.json"), JSON.stringify(generation ?? {}));
  return await readDecoderShape(folder);
}

describe("readDecoderShape()", () => {
  test("fills in fields that old files lack", async () => {
    expect(await read()).toEqual({
      architecture: "LlamaForCausalLM",
      vocabularySize: 1_000,
      hiddenSize: 64,
      feedForwardSize: 160,
      layerCount: 3,
      queryHeadCount: 4,
      keyValueHeadCount: 4,
      headSize: 16,
      normEpsilon: 1e-6,
      rotaryTheta: 10_000,
      rotaryScaling: { type: "none" },
      normalizesHeads: false,
      tiesEmbedding: false,
      contextLength: 2_048,
      endTokenIds: [],
    });
  });

  test("reads angles from older and newer files", async () => {
    const llama3 = {
      factor: 8,
      low_freq_factor: 1,
      high_freq_factor: 4,
      original_max_position_embeddings: 8_192,
    };
    const expected = {
      rotaryTheta: 500_000,
      rotaryScaling: {
        type: "llama3",
        factor: 8,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalContextLength: 8_192,
      },
    };
    const older = { rope_theta: 500_000, rope_scaling: { ...llama3, rope_type: "llama3" } };
    expect(await read(older)).toMatchObject(expected);
    const newer = {
      rope_parameters: { ...llama3, rope_type: "llama3", rope_theta: 500_000 },
    };
    expect(await read(newer)).toMatchObject(expected);
    const oldest = { rope_scaling: { type: "linear", factor: 2 } };
    expect((await read(oldest)).rotaryScaling).toEqual({ type: "linear", factor: 2 });
    const plain = { rope_parameters: { rope_type: "default", rope_theta: 7 }, rope_scaling: null };
    expect((await read(plain)).rotaryScaling).toEqual({ type: "none" });
  });

  test("prefers the end ids of generation_config.json to those of config.json", async () => {
    expect((await read({ eos_token_id: 5 })).endTokenIds).toEqual([5]);
    expect((await read({ eos_token_id: 5 }, { eos_token_id: [7, 8] })).endTokenIds).toEqual([7, 8]);
  });

  const mixture = {
    architectures: ["Qwen3MoeForCausalLM"],
    num_experts: 16,
    num_experts_per_tok: 4,
    moe_intermediate_size: 24,
  };

  test("reads the experts of a mixture, and the layers that have some", async () => {
    const expected = {
      expertCount: 16,
      perToken: 4,
      expertSize: 24,
      normalizesWeights: false,
      layers: [0, 1, 2],
    };
    expect(await read(mixture)).toMatchObject({ mixture: expected, normalizesHeads: true });
    const newer = { ...mixture, num_experts: undefined, num_local_experts: 16 };
    expect((await read({ ...newer, norm_topk_prob: true })).mixture).toEqual({
      ...expected,
      normalizesWeights: true,
    });
    expect((await read({ ...mixture, decoder_sparse_step: 2 })).mixture?.layers).toEqual([1]);
    expect((await read({ ...mixture, mlp_only_layers: [0, 2] })).mixture?.layers).toEqual([1]);
    expect(await read({ ...mixture, decoder_sparse_step: 4 })).not.toHaveProperty("mixture");
  });

  const refused: readonly [string, Readonly<Record<string, unknown>>, RegExp][] = [
    [
      "another architecture",
      { architectures: ["GPT2LMHeadModel"] },
      /architectures in config\.json is \["GPT2LMHeadModel"\], expected one of LlamaForCausalLM.* inference server/,
    ],
    ["no architecture", { architectures: undefined }, /architectures in config\.json is missing/],
    ["a missing size", { vocab_size: undefined }, /vocab_size in config\.json is missing/],
    ["a fractional size", { hidden_size: 64.5 }, /hidden_size .* is 64\.5, expected a whole/],
    [
      "an odd size",
      { intermediate_size: 161 },
      /intermediate_size .* 161, expected a multiple of 8/,
    ],
    ["heads too narrow", { num_attention_heads: 16 }, /head_dim .* expected a multiple of 8/],
    ["heads that do not share evenly", { num_key_value_heads: 3 }, /num_key_value_heads .* is 3/],
    ["another activation", { hidden_act: "gelu" }, /hidden_act .* is "gelu", expected "silu"/],
    [
      "quantised weights",
      { quantization_config: { bits: 4 } },
      /quantization_config .* unquantised/,
    ],
    ["sliding windows", { use_sliding_window: true }, /use_sliding_window .* is true/],
    ["layers of several kinds", { layer_types: ["sliding_attention"] }, /layer_types/],
    ["heads turned in part", { partial_rotary_factor: 0.5 }, /partial_rotary_factor .* is 0\.5/],
    [
      "angles scaled otherwise",
      { rope_scaling: { rope_type: "yarn", factor: 4 } },
      /rope_scaling\.rope_type .* is "yarn", expected "default", "linear" or "llama3"/,
    ],
    [
      "scaling without its factor",
      { rope_scaling: { type: "linear" } },
      /rope_scaling\.factor .* is missing/,
    ],
    [
      "more experts a token than there are",
      { ...mixture, num_experts_per_tok: 17 },
      /num_experts_per_tok .* is 17, expected at most the number of experts, 16/,
    ],
    [
      "experts of an odd size",
      { ...mixture, moe_intermediate_size: 20 },
      /moe_intermediate_size .* is 20, expected a multiple of 8/,
    ],
    [
      "dense layers that are no list",
      { ...mixture, mlp_only_layers: 2 },
      /mlp_only_layers .* is 2, expected a list of layers/,
    ],
    ["an end id that is none", { eos_token_id: "</s>" }, /eos_token_id .* expected an id/],
    [
      "a flag that is none",
      { tie_word_embeddings: 1 },
      /tie_word_embeddings .* is 1, expected true/,
    ],
  ];
  for (const [what, change, message] of refused) {
    test(`refuses ${what}`, async () => {
      const error: unknown = await read(change).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UsageError);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).toContain(folder);
    });
  }

  test("refuses a folder without a model, and files that are not JSON", async () => {
    const empty = path.join(folder, "nowhere");
    await expect(readDecoderShape(empty)).rejects.toThrow(/there is no config\.json, expected/);
    await writeFile(path.join(folder, "config.json"), "{");
    await expect(readDecoderShape(folder)).rejects.toThrow(/it is not JSON/);
    await writeFile(path.join(folder, "config.json"), "[1]");
    await expect(readDecoderShape(folder)).rejects.toThrow(/not a JSON object/);
  });
});
