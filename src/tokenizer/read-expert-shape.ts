import type { ExpertShape } from "../columns/column-specs.ts";
import { objectOf } from "./model-file.ts";
import type { JsonObject } from "../values/is-object.ts";

/** The names of the number of experts in `config.json`, by family. */
const expertCountNames = [
  "num_experts",
  "n_routed_experts",
  "num_local_experts",
  "moe_num_experts",
];
/** The names of the number of experts a token. */
const perTokenNames = ["num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"];

/**
 * Reads the shape of a mixture of experts from a model's `config.json`. Returns `undefined` for other models.
 *
 * **Source:** huggingface/transformers, the configuration files of Qwen3-MoE, Mixtral, DeepSeek-V3, GLM-4-MoE and
 * Kimi K2.
 */
export function readExpertShape(config: JsonObject): ExpertShape | undefined {
  const text = objectOf(config["text_config"]);
  const find = (names: readonly string[]): number | undefined => {
    for (const own of [text, config]) {
      for (const name of names) if (typeof own[name] === "number") return own[name];
    }
    return undefined;
  };
  const layerCount = find(["num_hidden_layers"]);
  const perToken = find(perTokenNames);
  const expertCount = find(expertCountNames);
  if (layerCount === undefined || perToken === undefined || expertCount === undefined) {
    return undefined;
  }
  return { layerCount, perToken, expertCount };
}
