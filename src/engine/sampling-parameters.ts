/** The sampling parameters of a request. Names and ranges are the usual ones. */
export interface SamplingParameters {
  /** 0 is greedy. Default 1. */
  readonly temperature?: number;
  /** (0, 1]. Default 1. */
  readonly topP?: number;
  /** The number of most likely tokens to sample from. -1 keeps all tokens. Default -1. */
  readonly topK?: number;
  /** [0, 1]. Default 0. */
  readonly minP?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly repetitionPenalty?: number;
  /** The seed, which makes a request repeatable if the engine supports it. */
  readonly seed?: number;
  /** Further parameters under the engine's own names, passed on unchanged. */
  readonly extra?: Readonly<Record<string, unknown>>;
}
