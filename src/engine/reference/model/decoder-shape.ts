/** How rotary angles are scaled to reach beyond the context that a model was trained with. */
export type RotaryScaling =
  | { readonly type: "none" }
  /** All angles divided. */
  | { readonly type: "linear"; readonly factor: number }
  /** Slow angles divided, fast ones kept, those between blended. */
  | {
      readonly type: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      /** In tokens. */
      readonly originalContextLength: number;
    };

/** The architectures that the engine computes, under the names that `config.json` gives them. */
export const ARCHITECTURES = ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"] as const;

/** One of them. */
export type Architecture = (typeof ARCHITECTURES)[number];

/** The shape of a decoder, from its `config.json` and `generation_config.json`. JSON-able. */
export interface DecoderShape {
  readonly architecture: Architecture;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly feedForwardSize: number;
  readonly layerCount: number;
  readonly queryHeadCount: number;
  /** Divides `queryHeadCount`. */
  readonly keyValueHeadCount: number;
  readonly headSize: number;
  readonly normEpsilon: number;
  readonly rotaryTheta: number;
  readonly rotaryScaling: RotaryScaling;
  /** Whether queries and keys are normalised head by head before they are turned. */
  readonly normalizesHeads: boolean;
  /** Whether the embedding is the output layer too. */
  readonly tiesEmbedding: boolean;
  /** In tokens. */
  readonly contextLength: number;
  /** Ids on which the model itself says that sampling ends. */
  readonly endTokenIds: readonly number[];
}
