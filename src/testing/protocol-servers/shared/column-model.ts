import type { ExpertShape, IndexerShape } from "../../../columns/column-specs.ts";

/** The side columns that a test server returns, as its command-line options and model decide. */
export interface TestColumns {
  /**
   * The shape of routed experts. Present if the model is a mixture of experts, and the server was started to return
   * routes.
   */
  readonly routedExperts?: ExpertShape & {
    /** Layers without experts. Default: none. */
    readonly denseLayers?: readonly number[];
  };
  /** Kept tokens: the maximum number that SGLang returns. vLLM returns kept tokens with each reply if this is set. */
  readonly keptTokens?: { readonly maxCount: number };
  /**
   * The shape of the indexer's positions. Present if the model has a sparse-attention indexer, and the server was
   * started to return its positions.
   */
  readonly indexerTopK?: IndexerShape;
  /** The model that computes the values. Default: `createColumnModel()`. */
  readonly model?: ColumnModel;
}

/** A token that was computed. */
export interface ComputedToken {
  readonly id: number;
  /** The token's index in prompt and output together. */
  readonly position: number;
  /** The version of the weights that computed the token. */
  readonly version: string;
}

/** A token that was sampled. */
export interface DrawnToken {
  readonly id: number;
  readonly logprob: number;
  /** Its index in the output. */
  readonly index: number;
}

/** A token of a prompt that is scored. */
export interface ScoredToken {
  readonly id: number;
  readonly logprob: number;
  /** The token's index in the prompt. The prompt's length stands for the token that would be sampled next. */
  readonly position: number;
}

/** A token with its logprob. */
export interface LikelyToken {
  readonly id: number;
  readonly logprob: number;
}

/** Functions that compute the values of columns from the token, its index and the version of the weights. */
export interface ColumnModel {
  /** The experts of a token in a layer, in order of their weight. */
  experts(token: ComputedToken, layer: number): readonly number[];
  /** The positions that the indexer selected for a token in a layer. */
  positions(token: ComputedToken, layer: number): readonly number[];
  /** The ids that were kept when a token was drawn, likeliest first, and the token's logprob over them. */
  kept(
    token: DrawnToken,
    most: number,
  ): { readonly ids: readonly number[]; readonly logprob: number };
  /** The most probable tokens, best first. The drawn token may be absent. */
  tops(token: DrawnToken, count: number): readonly LikelyToken[];
  /** The most probable tokens at the position of a prompt's token, best first. The prompt's token may be absent. */
  promptTops(token: ScoredToken, count: number): readonly LikelyToken[];
}

/** Creates a model whose values are a deterministic function of token, place and version. */
export function createColumnModel({
  routedExperts,
  indexerTopK,
}: Omit<TestColumns, "model">): ColumnModel {
  const { expertCount = 1, perToken = 0, denseLayers = [] } = routedExperts ?? {};
  return {
    experts({ id, position, version }, layer) {
      if (denseLayers.includes(layer)) return Array.from({ length: perToken }, () => 0);
      const first = mix(id * 31 + position * 7_919 + layer * 104_729 + hashText(version));
      return Array.from({ length: perToken }, (_, rank) => (first + rank) % expertCount);
    },
    positions({ position }, layer) {
      const { perToken: count = 0 } = indexerTopK ?? {};
      return Array.from({ length: count }, (_, rank) =>
        rank > position ? -1 : (position + rank + layer) % (position + 1),
      );
    },
    kept({ id, logprob }, most) {
      const size = 1 + (mix(id) % most);
      const others = Array.from({ length: size - 1 }, (_, index) => otherId(id, index + 1));
      const rank = mix(id + 1) % size;
      // Over fewer tokens, a token is likelier.
      return { ids: others.toSpliced(rank, 0, id), logprob: size === 1 ? 0 : logprob / 2 };
    },
    tops: inventTops,
    promptTops: inventTops,
  };
}

/** Invents the most probable tokens. For each fourth token, they do not include the token itself. */
function inventTops({ id, logprob }: LikelyToken, count: number): readonly LikelyToken[] {
  const isBest = id % 4 !== 3;
  const entries = Array.from({ length: count }, (_, rank) => ({
    id: otherId(id, rank + 1),
    logprob: isBest ? logprob - rank : (logprob * (rank + 1)) / (count + 1),
  }));
  return isBest ? entries.with(0, { id, logprob }) : entries;
}

/** Returns another id near an id: a different one for each distance from 1 on. */
function otherId(id: number, distance: number): number {
  return distance <= id ? id - distance : id + distance;
}

function hashText(text: string): number {
  let hash = 0;
  for (const char of text) hash = (Math.imul(hash, 31) + char.codePointAt(0)!) | 0;
  return hash;
}

/** Mixes the bits of a number. */
function mix(value: number): number {
  const state = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (state ^ (state >>> 12)) >>> 0;
}
