/** One token that a test server samples. */
export interface PolicyToken {
  readonly id: number;
  /** The natural logarithm of the probability. The client receives `null` for infinities and NaN, as from SGLang. */
  readonly logprob: number;
  /**
   * Ends the turn with this token. The text is the stop string, or the cause that the engine names.
   */
  readonly matched?: string;
}

/** A request for a turn. */
export interface PolicyRequest {
  readonly inputIds: readonly number[];
  /**
   * The request's id at the server. An id from Turnwright ends with `~` and the name of the call.
   */
  readonly rid: string;
  /** The value of the `X-SMG-Routing-Key` header: Turnwright's session id. */
  readonly routingKey: string | undefined;
  /**
   * The request's `sampling_params` with the server's defaults, after the server's own rewriting
   * (a temperature of 0 becomes 1 with `top_k` 1).
   */
  readonly samplingParams: Readonly<Record<string, unknown>>;
  readonly maxNewTokens: number;
  readonly stopTokenIds: readonly number[];
  /** Aborts when the request is aborted. Only policies that wait need the signal. */
  readonly signal: AbortSignal;
}

/** A request for scores. */
export type PolicyScoreRequest = Pick<PolicyRequest, "inputIds" | "rid" | "routingKey">;

/** Tokens in order. The server reads them until a stop id, the budget or an abort ends the turn. */
export type PolicyTokens = Iterable<PolicyToken> | AsyncIterable<PolicyToken>;

/** The source of a test server's samples. A policy should return the same tokens for the same request. */
export interface ServerPolicy {
  readonly name: string;
  /**
   * Starts one turn. If it throws, or if the tokens end before the turn, the server answers with
   * HTTP 400 and the message, and adds the message to `problems`.
   */
  begin(request: PolicyRequest): PolicyTokens | Promise<PolicyTokens>;
  /**
   * Returns the logprob of each input id after the ids before it, as `begin()` would report it. The
   * first value is ignored. If it throws, the server answers as for `begin()`. Absent: requests for
   * scores are refused.
   */
  score?(request: PolicyScoreRequest): readonly number[] | Promise<readonly number[]>;
}
