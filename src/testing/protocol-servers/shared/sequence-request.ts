/** One sequence that a server is asked to sample. */
export interface SequenceRequest {
  /** The request's name; unique among those that are live. */
  readonly rid: string;
  readonly inputIds: readonly number[];
  /** The request's sampling parameters with the server's defaults, under the server's own names. */
  readonly samplingParams: Readonly<Record<string, unknown>>;
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  /**
   * True if the input's logprobs are requested. If at most one token is to be sampled too, it is a
   * filler that does not come from the policy.
   */
  readonly scoresInput?: boolean;
  /** It ends, as having used its budget up, before anything is sampled. */
  readonly samplesNothing?: boolean;
}
