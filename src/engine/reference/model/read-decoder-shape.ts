import type { Architecture, DecoderShape, RotaryScaling } from "./decoder-shape.ts";
import { ARCHITECTURES } from "./decoder-shape.ts";
import type { JsonFields } from "./json-fields.ts";
import { readJsonFields, readOptionalJsonFields } from "./json-fields.ts";
import { readMixtureShape } from "./read-mixture-shape.ts";
import { readSize, REMEDY } from "./read-size.ts";

/**
 * Reads a model's shape from `config.json` and `generation_config.json`.
 *
 * **Source:** huggingface/transformers
 * src/transformers/models/{llama,qwen2,qwen3,qwen3_moe}/configuration_*.py (fields and their defaults).
 *
 * @throws UsageError naming folder, file, field and remedy if the engine does not support the
 *   model.
 */
export async function readDecoderShape(folder: string): Promise<DecoderShape> {
  const config = await readJsonFields(folder, "config.json");
  const generation = await readOptionalJsonFields(folder, "generation_config.json");
  const architecture = readArchitecture(config);
  refuseUnsupported(config);
  const queryHeadCount = config.count("num_attention_heads");
  const layerCount = config.count("num_hidden_layers");
  const hiddenSize = readSize(config, "hidden_size", { multipleOf: 16 });
  const keyValueHeadCount = config.count("num_key_value_heads", queryHeadCount);
  if (queryHeadCount % keyValueHeadCount !== 0) {
    throw config.error("num_key_value_heads", `a divisor of num_attention_heads ${queryHeadCount}`);
  }
  return {
    architecture,
    vocabularySize: config.count("vocab_size"),
    hiddenSize,
    feedForwardSize: readSize(config, "intermediate_size", { multipleOf: 8 }),
    ...readMixture(config, { architecture, layerCount }),
    layerCount,
    queryHeadCount,
    keyValueHeadCount,
    headSize: readSize(config, "head_dim", {
      multipleOf: 8,
      fallback: hiddenSize / queryHeadCount,
    }),
    normEpsilon: config.positive("rms_norm_eps", 1e-6),
    rotaryTheta: (config.object("rope_parameters") ?? config).positive("rope_theta", 10_000),
    rotaryScaling: readRotaryScaling(config),
    normalizesHeads: architecture.startsWith("Qwen3"),
    tiesEmbedding: config.flag("tie_word_embeddings", false),
    contextLength: config.count("max_position_embeddings"),
    endTokenIds: readEndTokenIds(generation) ?? readEndTokenIds(config) ?? [],
  };
}

function readMixture(
  config: JsonFields,
  { architecture, layerCount }: Pick<DecoderShape, "architecture" | "layerCount">,
): Pick<DecoderShape, "mixture"> {
  if (architecture !== "Qwen3MoeForCausalLM") return {};
  const mixture = readMixtureShape(config, layerCount);
  return { ...(mixture !== undefined && { mixture }) };
}

function readArchitecture(config: JsonFields): Architecture {
  const names = config.get("architectures");
  const found = ARCHITECTURES.find((name) => Array.isArray(names) && names[0] === name);
  if (found !== undefined) return found;
  throw config.error("architectures", `one of ${ARCHITECTURES.join(", ")}; ${REMEDY}`);
}

function refuseUnsupported(config: JsonFields): void {
  if (config.get("hidden_act") !== undefined && config.get("hidden_act") !== "silu") {
    throw config.error("hidden_act", `"silu"; ${REMEDY}`);
  }
  if (config.get("quantization_config") !== undefined) {
    throw config.error("quantization_config", "unquantised weights (F32, F16 or BF16)");
  }
  if (config.flag("use_sliding_window", false)) {
    throw config.error("use_sliding_window", `false; ${REMEDY}`);
  }
  const layerTypes = config.get("layer_types");
  if (Array.isArray(layerTypes) && layerTypes.some((type) => type !== "full_attention")) {
    throw config.error("layer_types", `"full_attention" throughout; ${REMEDY}`);
  }
  if (config.positive("partial_rotary_factor", 1) !== 1) {
    throw config.error("partial_rotary_factor", `1; ${REMEDY}`);
  }
}

/**
 * Reads the scaling of rotary angles. Older files have `rope_scaling` with `type`, newer ones
 * `rope_parameters` with `rope_type`.
 */
function readRotaryScaling(config: JsonFields): RotaryScaling {
  const scaling = config.object("rope_parameters") ?? config.object("rope_scaling");
  const type = scaling?.get("rope_type") ?? scaling?.get("type") ?? "default";
  if (scaling === undefined || type === "default") return { type: "none" };
  if (type === "linear") return { type, factor: scaling.positive("factor") };
  if (type === "llama3") {
    return {
      type,
      factor: scaling.positive("factor"),
      lowFrequencyFactor: scaling.positive("low_freq_factor"),
      highFrequencyFactor: scaling.positive("high_freq_factor"),
      originalContextLength: scaling.count("original_max_position_embeddings"),
    };
  }
  const field = scaling.get("rope_type") === undefined ? "type" : "rope_type";
  throw scaling.error(field, `"default", "linear" or "llama3"; ${REMEDY}`);
}

function readEndTokenIds(fields: JsonFields | undefined): readonly number[] | undefined {
  const value = fields?.get("eos_token_id");
  if (fields === undefined || value === undefined) return undefined;
  const ids: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (ids.every((id): id is number => Number.isSafeInteger(id))) return ids;
  throw fields.error("eos_token_id", "an id or a list of ids");
}
