/** One sequence that a request asks the server to sample. */
export interface SequenceRequest {
  /** The request's name, unique among the unfinished ones. */
  readonly rid: string;
  readonly inputIds: readonly number[];
  /** The request's sampling parameters with the server's defaults, under the server's own names. */
  readonly samplingParams: Readonly<Record<string, unknown>>;
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  /**
   * True if the input's logprobs are requested. If the request also samples at most one token, this token is a filler
   * that does not come from the policy.
   */
  readonly scoresInput?: boolean;
  /** True if the sequence ends before any token is sampled, with the reason `length`. */
  readonly samplesNothing?: boolean;
}
