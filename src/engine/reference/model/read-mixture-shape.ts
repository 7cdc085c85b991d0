import type { MixtureShape } from "./decoder-shape.ts";
import type { JsonFields } from "./json-fields.ts";
import { readSize } from "./read-size.ts";

/**
 * Reads the experts of a Qwen3-MoE model from its `config.json`. Returns `undefined` if all layers are dense.
 *
 * **Source:** huggingface/transformers src/transformers/models/qwen3_moe/configuration_qwen3_moe.py (fields and
 * their defaults). Newer releases write the number of experts as `num_local_experts`.
 *
 * @throws UsageError naming folder, file, field and remedy if a field cannot be used.
 */
export function readMixtureShape(config: JsonFields, layerCount: number): MixtureShape | undefined {
  const denseLayers = readDenseLayers(config);
  const sparseStep = config.count("decoder_sparse_step", 1);
  const layers = Array.from({ length: layerCount }, (_, layer) => layer).filter((layer) =>
    hasExperts(layer, { sparseStep, denseLayers }),
  );
  if (layers.length === 0) return undefined;
  const isNewer = config.get("num_experts") === undefined;
  const expertCount = config.count(isNewer ? "num_local_experts" : "num_experts", 128);
  const perToken = config.count("num_experts_per_tok", 8);
  if (perToken > expertCount) {
    throw config.error("num_experts_per_tok", `at most the number of experts, ${expertCount}`);
  }
  return {
    expertCount,
    perToken,
    expertSize: readSize(config, "moe_intermediate_size", { multipleOf: 8, fallback: 768 }),
    normalizesWeights: config.flag("norm_topk_prob", false),
    layers,
  };
}

/**
 * True if a layer of a Qwen3-MoE model has experts: every `sparseStep`-th layer, except those that are listed as dense.
 *
 * **Source:** huggingface/transformers src/transformers/models/qwen3_moe/modeling_qwen3_moe.py.
 */
export function hasExperts(
  layer: number,
  { sparseStep, denseLayers }: { sparseStep: number; denseLayers: readonly number[] },
): boolean {
  return (layer + 1) % sparseStep === 0 && !denseLayers.includes(layer);
}

function readDenseLayers(config: JsonFields): readonly number[] {
  const layers = config.get("mlp_only_layers") ?? [];
  const isList = Array.isArray(layers) && layers.every((layer) => Number.isSafeInteger(layer));
  if (isList) return layers as readonly number[];
  throw config.error("mlp_only_layers", "a list of layers");
}
