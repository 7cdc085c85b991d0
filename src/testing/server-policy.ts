/** One token that a test server samples. */
export interface PolicyToken {
  readonly id: number;
  /** Natural logarithm. Numbers that are not finite reach the client as `null`, as they do from SGLang. */
  readonly logprob: number;
  /** Ends the turn on a stop string or a cause that the engine names; this token is its last. */
  readonly matched?: string;
}

/** What a policy is asked to continue. */
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

/** What a policy is asked to score. */
export type PolicyScoreRequest = Pick<PolicyRequest, "inputIds" | "rid" | "routingKey">;

/** Tokens in order. The server takes them until a stop id, the budget, or an abort ends the turn. */
export type PolicyTokens = Iterable<PolicyToken> | AsyncIterable<PolicyToken>;

/** What a test server samples from. Same request, same tokens, wherever a policy can arrange it. */
export interface ServerPolicy {
  readonly name: string;
  /**
   * Starts one turn. Throwing, and running out of tokens before the turn ends, are complaints: the
   * request is answered with HTTP 400 and the message, and the server lists it under `problems`.
   */
  begin(request: PolicyRequest): PolicyTokens | Promise<PolicyTokens>;
  /**
   * The logprob of each input id behind those before it, as `begin()` reports it where it samples
   * that id there; nobody looks at the first. Absent where the policy cannot say: requests for scores
   * are then refused. Throwing is a complaint as above.
   */
  score?(request: PolicyScoreRequest): readonly number[] | Promise<readonly number[]>;
}
