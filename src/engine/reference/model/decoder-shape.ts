import type { ExpertShape } from "../../../columns/column-specs.ts";

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
export const ARCHITECTURES = [
  "LlamaForCausalLM",
  "Qwen2ForCausalLM",
  "Qwen3ForCausalLM",
  "Qwen3MoeForCausalLM",
] as const;

/** A supported architecture. */
export type Architecture = (typeof ARCHITECTURES)[number];

/** The experts of a decoder. */
export interface MixtureShape {
  /** Number of experts in a layer. */
  readonly expertCount: number;
  /** Number of experts that compute a token. */
  readonly perToken: number;
  /** The feed-forward size of an expert. */
  readonly expertSize: number;
  /** True if the weights of a token's experts are divided by their sum. */
  readonly normalizesWeights: boolean;
  /** The indices of the layers with experts, ascending, at least one. The other layers are dense. */
  readonly layers: readonly number[];
}

/** The shape of a decoder, from its `config.json` and `generation_config.json`. JSON-able. */
export interface DecoderShape {
  readonly architecture: Architecture;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  /** The feed-forward size of a layer without experts. */
  readonly feedForwardSize: number;
  /** The experts. Absent if no layer has experts. */
  readonly mixture?: MixtureShape;
  readonly layerCount: number;
  readonly queryHeadCount: number;
  /** The number of heads of keys and values. It divides `queryHeadCount`. */
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

/** Returns the shape of a token's routes, or `undefined` if no layer has experts. */
export function routeShapeOf({ layerCount, mixture }: DecoderShape): ExpertShape | undefined {
  if (mixture === undefined) return undefined;
  const { perToken, expertCount } = mixture;
  return { layerCount, perToken, expertCount };
}
