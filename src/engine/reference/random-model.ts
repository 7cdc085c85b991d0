import { writeFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { makeFolder } from "../../files/make-folder.ts";
import { spreadBits } from "../../values/hash-text.ts";
import type { Architecture } from "./model/decoder-shape.ts";
import { hasExperts } from "./model/read-mixture-shape.ts";

/** The fields of `config.json` that describe a model's shape. */
export interface RandomModelConfig {
  readonly architectures: readonly [Architecture];
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly max_position_embeddings: number;
  readonly tie_word_embeddings: boolean;
  /** The experts of `Qwen3MoeForCausalLM`. Other models have none. */
  readonly num_experts?: number;
  readonly num_experts_per_tok?: number;
  readonly moe_intermediate_size?: number;
  readonly norm_topk_prob?: boolean;
  readonly decoder_sparse_step?: number;
  readonly mlp_only_layers?: readonly number[];
  readonly [field: string]: unknown;
}

/**
 * Writes a model's folder with pseudo-random weights. Each weight depends only on the seed, its tensor's name and its
 * index, exact to the bit, so that other programs can generate the same model. The model's text makes no sense, but its
 * shapes and numbers are realistic.
 */
export async function writeRandomModel(
  folder: string,
  { config, seed = 0 }: { config: RandomModelConfig; seed?: number },
): Promise<void> {
  await makeFolder(folder);
  await writeFile(path.join(folder, "config.json"), `${JSON.stringify(config, null, 2)}\n`);
  const tensors = listTensors(config);
  const header: Record<string, unknown> = {};
  let end = 0;
  for (const { name, shape } of tensors) {
    const start = end;
    end += elementCount(shape) * 4;
    header[name] = { dtype: "F32", shape, data_offsets: [start, end] };
  }
  const headerBytes = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(headerBytes.length));
  const data = tensors.map((tensor) => Buffer.from(randomTensor(tensor, seed).buffer));
  await writeFile(path.join(folder, "model.safetensors"), [size, headerBytes, ...data]);
}

interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
}

function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function listTensors(config: RandomModelConfig): readonly Tensor[] {
  const hidden = config.hidden_size;
  const layers = Array.from({ length: config.num_hidden_layers }, (_, index) =>
    listLayerTensors(config, index),
  );
  return [
    { name: "model.embed_tokens.weight", shape: [config.vocab_size, hidden] },
    ...layers.flat(),
    { name: "model.norm.weight", shape: [hidden] },
    ...(config.tie_word_embeddings
      ? []
      : [{ name: "lm_head.weight", shape: [config.vocab_size, hidden] }]),
  ];
}

function listLayerTensors(config: RandomModelConfig, layer: number): readonly Tensor[] {
  const { hidden_size: hidden, head_dim: head } = config;
  const queries = config.num_attention_heads * head;
  const keys = config.num_key_value_heads * head;
  const [architecture] = config.architectures;
  const projections: readonly [string, number][] = [
    ["q_proj", queries],
    ["k_proj", keys],
    ["v_proj", keys],
  ];
  const tensors: readonly Tensor[] = [
    { name: "input_layernorm.weight", shape: [hidden] },
    ...projections.map(([name, size]) => ({
      name: `self_attn.${name}.weight`,
      shape: [size, hidden],
    })),
    ...(architecture === "Qwen2ForCausalLM"
      ? projections.map(([name, size]) => ({ name: `self_attn.${name}.bias`, shape: [size] }))
      : []),
    ...(architecture.startsWith("Qwen3")
      ? ["q_norm", "k_norm"].map((name) => ({ name: `self_attn.${name}.weight`, shape: [head] }))
      : []),
    { name: "self_attn.o_proj.weight", shape: [hidden, queries] },
    { name: "post_attention_layernorm.weight", shape: [hidden] },
    ...listFeedForwardTensors(config, layer),
  ];
  return tensors.map(({ name, shape }) => ({ name: `model.layers.${layer}.${name}`, shape }));
}

function listFeedForwardTensors(config: RandomModelConfig, layer: number): readonly Tensor[] {
  const { hidden_size: hidden, intermediate_size, num_experts, moe_intermediate_size } = config;
  const { decoder_sparse_step: sparseStep = 1, mlp_only_layers: denseLayers = [] } = config;
  const list = (prefix: string, inner: number): readonly Tensor[] => [
    { name: `${prefix}.gate_proj.weight`, shape: [inner, hidden] },
    { name: `${prefix}.up_proj.weight`, shape: [inner, hidden] },
    { name: `${prefix}.down_proj.weight`, shape: [hidden, inner] },
  ];
  const isMixture = config.architectures[0] === "Qwen3MoeForCausalLM";
  if (!isMixture || !hasExperts(layer, { sparseStep, denseLayers })) {
    return list("mlp", intermediate_size);
  }
  const [count, inner] = [num_experts, moe_intermediate_size];
  if (count === undefined || inner === undefined) {
    throw new UsageError(
      "Cannot write a random model: num_experts or moe_intermediate_size is missing, expected both " +
        "in the config of Qwen3MoeForCausalLM",
    );
  }
  const experts = Array.from({ length: count }, (_, expert) =>
    list(`mlp.experts.${expert}`, inner),
  );
  return [{ name: "mlp.gate.weight", shape: [count, hidden] }, ...experts.flat()];
}

/**
 * Returns a tensor's weights. Matrices have a variance of 4 / inputs, so that activations neither
 * vanish nor explode and logits differ by several units. Norms are near 1, biases near 0.
 */
function randomTensor({ name, shape }: Tensor, seed: number): Float32Array<ArrayBuffer> {
  const isNorm = name.endsWith("norm.weight");
  const inputs = shape[1];
  const scale = inputs === undefined ? 0.25 : Math.sqrt(12 / inputs);
  const stream = nameHash(name, seed);
  return Float32Array.from(
    { length: elementCount(shape) },
    (_, index) =>
      (isNorm ? 1 : 0) + scale * centered(spreadBits(stream + Math.imul(index, 0x9e3779b9))),
  );
}

/** Returns a number in [-1, 1) from the high 24 bits, so that no step of the computation rounds. */
function centered(bits: number): number {
  return (bits >>> 8) / 2 ** 23 - 1;
}

function nameHash(name: string, seed: number): number {
  let state = seed | 0;
  for (const character of name) state = spreadBits(Math.imul(state, 31) + character.charCodeAt(0));
  return state;
}
