/** One token that a test server samples. */
export interface PolicyToken {
  readonly id: number;
  /** Natural logarithm. Numbers that are not finite reach the client as `null`, as they do from SGLang. */
  readonly logprob: number;
  /** Ends the turn on a stop string or a cause that the engine names; this token is its last. */
  readonly matched?: string;
}

/** A request for a turn. */
export interface PolicyRequest {
  readonly inputIds: readonly number[];
  /** The request's id at the server; one of Turnwright's ends with `~` and what the call was named. */
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
  /** Aborts when the request is aborted; only policies that wait need it. */
  readonly signal: AbortSignal;
}

/** A request for scores. */
export type PolicyScoreRequest = Pick<PolicyRequest, "inputIds" | "rid" | "routingKey">;

/** Tokens in order. The server takes them until a stop id, the budget, or an abort ends the turn. */
export type PolicyTokens = Iterable<PolicyToken> | AsyncIterable<PolicyToken>;

/**
 * The source of a test server's samples. Returns the same tokens for the same request if it can.
 */
export interface ServerPolicy {
  readonly name: string;
  /**
   * Starts one turn. Throwing, and running out of tokens before the turn ends, are complaints: the
   * request is answered with HTTP 400 and the message, and the server lists it under `problems`.
   */
  begin(request: PolicyRequest): PolicyTokens | Promise<PolicyTokens>;
  /**
   * Returns the logprob of each input id after the ids before it, as `begin()` reports it when it
   * samples that id there. The first value is ignored. Absent if the policy has no scores: requests
   * for scores are then refused. Throwing is a complaint, as above.
   */
  score?(request: PolicyScoreRequest): readonly number[] | Promise<readonly number[]>;
}
