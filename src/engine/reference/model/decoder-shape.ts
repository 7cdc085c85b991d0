/** The scaling of rotary angles for contexts longer than the model was trained with. */
export type RotaryScaling =
  | { readonly type: "none" }
  /** Divides all angles. */
  | { readonly type: "linear"; readonly factor: number }
  /** Divides slow angles, keeps fast ones, and blends those between. */
  | {
      readonly type: "llama3";
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      /** In tokens. */
      readonly originalContextLength: number;
    };

/** The supported architectures, as `config.json` names them. */
export const ARCHITECTURES = ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"] as const;

/** A supported architecture. */
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
  /** True if each head of queries and keys is normalised before it is rotated. */
  readonly normalizesHeads: boolean;
  /** True if the output layer shares the embedding's weights. */
  readonly tiesEmbedding: boolean;
  /** Maximum length of prompt and output together, in tokens. */
  readonly contextLength: number;
  /** Ids that end sampling according to the model's own files. */
  readonly endTokenIds: readonly number[];
}
