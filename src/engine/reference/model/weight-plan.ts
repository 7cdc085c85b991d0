import { padToPanel } from "../kernels/multiply.ts";
import type { Allocator } from "./allocator.ts";
import type { DecoderShape, MixtureShape } from "./decoder-shape.ts";

/**
 * A matrix in panels, and the bias that is added to each row's product. All addresses are in bytes.
 */
export interface LinearAddress {
  readonly weights: number;
  readonly bias: number;
  readonly inputSize: number;
  /** Number of outputs, rounded up to full panels. */
  readonly outputSize: number;
}

/** The addresses of the weights of a feed-forward layer, or of one expert. */
export interface FeedForwardAddresses {
  /** The weights of `gate_proj` and `up_proj`, one after the other. */
  readonly gate: LinearAddress;
  readonly output: LinearAddress;
}

/** The addresses of the weights of a layer with experts. */
export interface ExpertAddresses {
  /** One output for each expert. */
  readonly router: LinearAddress;
  readonly experts: readonly FeedForwardAddresses[];
}

/** The addresses of a layer's weights. */
export interface LayerAddresses {
  readonly inputNorm: number;
  /** The weights of `q_proj`, `k_proj` and `v_proj`, one after the other. */
  readonly projection: LinearAddress;
  readonly queryNorm: number;
  readonly keyNorm: number;
  readonly attentionOutput: LinearAddress;
  readonly feedForwardNorm: number;
  readonly feedForward: FeedForwardAddresses | ExpertAddresses;
}

/** The addresses of all weights. */
export interface WeightAddresses {
  /** Zeros, enough for the widest bias. */
  readonly zeros: number;
  /** One row of `hiddenSize` for each id, packed as the output layer is. */
  readonly embedding: LinearAddress;
  readonly layers: readonly LayerAddresses[];
  readonly finalNorm: number;
  /** The output layer: the embedding itself if it is tied. */
  readonly output: LinearAddress;
}

/** Assigns addresses to all weights. */
export function planWeights(shape: DecoderShape, allocator: Allocator): WeightAddresses {
  const { hiddenSize, headSize, queryHeadCount, keyValueHeadCount, mixture } = shape;
  const queriesSize = queryHeadCount * headSize;
  const projectionSize = padToPanel(queriesSize + 2 * keyValueHeadCount * headSize);
  const zeros = allocator.floats(
    Math.max(
      projectionSize,
      2 * shape.feedForwardSize,
      hiddenSize,
      padToPanel(shape.vocabularySize),
      2 * (mixture?.expertSize ?? 0),
      padToPanel(mixture?.expertCount ?? 0),
    ),
  );
  const linear = (inputSize: number, outputSize: number, bias = zeros): LinearAddress => {
    const padded = padToPanel(outputSize);
    return { weights: allocator.floats(inputSize * padded), bias, inputSize, outputSize: padded };
  };
  const feedForward = (size: number): FeedForwardAddresses => ({
    gate: linear(hiddenSize, 2 * size),
    output: linear(size, hiddenSize),
  });
  const experts = ({ expertCount, expertSize }: MixtureShape): ExpertAddresses => ({
    router: linear(hiddenSize, expertCount),
    experts: Array.from({ length: expertCount }, () => feedForward(expertSize)),
  });
  const embedding = linear(hiddenSize, shape.vocabularySize);
  const layers = Array.from({ length: shape.layerCount }, (_, index) => ({
    inputNorm: allocator.floats(hiddenSize),
    projection: linear(hiddenSize, projectionSize, allocator.floats(projectionSize)),
    queryNorm: allocator.floats(headSize),
    keyNorm: allocator.floats(headSize),
    attentionOutput: linear(queriesSize, hiddenSize),
    feedForwardNorm: allocator.floats(hiddenSize),
    feedForward: mixture?.layers.includes(index)
      ? experts(mixture)
      : feedForward(shape.feedForwardSize),
  }));
  const finalNorm = allocator.floats(hiddenSize);
  const output = shape.tiesEmbedding ? embedding : linear(hiddenSize, shape.vocabularySize);
  return { zeros, embedding, layers, finalNorm, output };
}
