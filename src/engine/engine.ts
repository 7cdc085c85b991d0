import type { DiscardedSampling } from "../errors.ts";

export type { DiscardedSampling };

/** How tokens are drawn. Names and ranges are the field's; absent fields keep the value named here. */
export interface SamplingParameters {
  /** 0 is greedy. Default 1. */
  readonly temperature?: number;
  /** (0, 1]. Default 1. */
  readonly topP?: number;
  /** -1 keeps all tokens. Default -1. */
  readonly topK?: number;
  /** [0, 1]. Default 0. */
  readonly minP?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly repetitionPenalty?: number;
  /** Makes a request repeatable where the engine can. */
  readonly seed?: number;
  /** Passed on to the engine as they are, under the engine's own names. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** One policy call: ids in. */
export interface GenerateRequest {
  /** Exactly the ids recorded so far. */
  readonly promptIds: readonly number[];
  readonly sampling: SamplingParameters;
  /** At least 1. */
  readonly maxNewTokens: number;
  /** Ids that end the turn, the tokenizer's end-of-sequence id among them. */
  readonly stopTokenIds: readonly number[];
  /**
   * Number of ids that the policy's tokenizer has. A prompt's ids are below it, and a reply with an id
   * that is not is refused (`engine/bad-reply`): nothing could read it. Where absent, any id is taken.
   */
  readonly vocabularySize?: number;
  /**
   * Unique per policy call; the engine can abort by it, and may then abort every request whose id
   * begins with it, so none should be the beginning of another's.
   */
  readonly requestId: string;
  /** Stable over an episode, so that a router can keep it on one worker's prefix cache. */
  readonly sessionId: string;
}

/** Why sampling ended. */
export type Finish =
  /** A stop id was sampled (`matched` is its id), or the engine names what it stopped on. */
  | { readonly type: "stop"; readonly matched?: number | string }
  /** `maxNewTokens` were sampled, or fewer where the caller cut sampling short. */
  | { readonly type: "length" };

/** One stretch of sampling within a generation: uninterrupted, and by one version of the policy. */
export interface GenerationPiece {
  readonly requestId: string;
  /** How many of the generation's ids this piece brought, in order. */
  readonly tokenCount: number;
  /** The policy's version as the engine reported it for this piece; `""` where it reports none. */
  readonly policyVersion: string;
  /**
   * How the piece ended; `abort` where the engine interrupted it and it was resumed, where the
   * policy's version changed and sampling went on, or where the turn was cut short.
   */
  readonly finish: "stop" | "length" | "abort";
}

/** What one policy call returned: ids and logprobs out. */
export interface Generation {
  /** The ids as sampled, the matched stop id included. */
  readonly outputIds: readonly number[];
  /** `logprobs[i]` belongs to `outputIds[i]`; natural logarithm, within `logprobRange`. */
  readonly logprobs: readonly number[];
  readonly finish: Finish;
  /** In order; their token counts add up to `outputIds.length`. One, unless the engine interrupted. */
  readonly pieces: readonly GenerationPiece[];
  /** The number of prompt tokens that the engine says it saw in the first piece. */
  readonly promptTokenCount?: number;
  readonly cachedTokenCount?: number;
  /** Requests that were repeated though they may have been sampled; empty in the ordinary case. */
  readonly discarded: readonly DiscardedSampling[];
}

/** Which probabilities an engine's logprobs are logarithms of. */
export type LogprobConvention =
  /** Softmax of the logits divided by the temperature, before top-k, top-p and min-p. */
  | "tempered"
  /** Softmax of the raw logits. */
  | "raw"
  /** After every sampling transform. */
  | "processed";

/** What is known of a running engine. JSON-able; recorded with the run. */
export interface EngineDescription {
  /** Such as `sglang`. */
  readonly kind: string;
  readonly url?: string;
  readonly model?: string;
  readonly policyVersion?: string;
  /** The server's own release, where it says so. */
  readonly engineVersion?: string;
  readonly logprobConvention: LogprobConvention;
  /** Longest prompt and output together, where the engine says so. */
  readonly contextLength?: number;
  /** What of this is assumed rather than known, and why. */
  readonly warnings?: readonly string[];
}

/** Ids whose probabilities are asked for. */
export interface ScoreRequest {
  readonly ids: readonly number[];
  /** The first index that is scored, at least 1: each id is scored behind those before it. Default 1. */
  readonly from?: number;
  /** Scores are of the softmax at this temperature; 0 scores as 1 does. */
  readonly sampling: Pick<SamplingParameters, "temperature">;
  /** Number of ids that the policy's tokenizer has; `ids` are below it. Where absent, any are taken. */
  readonly vocabularySize?: number;
}

/** What accompanies a policy call. */
export interface GenerateOptions {
  /** Aborted, the call throws its reason, and the engine is told to stop. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Aborted, the engine is told to stop and returns what it has sampled of the turn so far, with the
   * finish `length`. An engine that cannot do so ignores it.
   */
  readonly cutShort?: AbortSignal | undefined;
  /**
   * Told of sampled ids as they come, each with its logprob. The returned generation stays the truth. An
   * engine that cannot tell before the end does not call it.
   */
  readonly onTokens?:
    | ((piece: {
        readonly tokenIds: readonly number[];
        readonly logprobs: readonly number[];
      }) => void)
    | undefined;
}

/** An inference engine that takes token ids and returns token ids with their logprobs. */
export interface Engine {
  readonly kind: string;
  /**
   * Samples one turn. Interruptions by the engine (weight updates) are resumed inside.
   *
   * @throws RolloutError with party `engine`: `engine/unreachable`, `engine/timeout`,
   *   `engine/overloaded`, `engine/bad-request`, `engine/prompt-too-long`, `engine/bad-reply`,
   *   `engine/nan`, `engine/interrupted`, `engine/unauthorized`, `engine/server-error`; it carries
   *   what was sampled and is discarded.
   * @throws InvariantError for a prompt with an id that is not of the vocabulary; nothing is sent.
   * @throws the signal's reason where the signal is aborted; the engine is then told to stop.
   */
  generate(request: GenerateRequest, options?: GenerateOptions): Promise<Generation>;
  /**
   * Scores ids that are there: `result[i]` is the logprob of `ids[from + i]`, under the engine's own
   * convention; what is `processed` is scored as it is where the temperature alone was set. Absent
   * where the engine cannot.
   *
   * @throws RolloutError as `generate()` does.
   * @throws UsageError where the engine cannot score at this temperature under its own convention.
   * @throws the signal's reason where the signal is aborted.
   */
  score?(request: ScoreRequest, options?: { signal?: AbortSignal }): Promise<readonly number[]>;
  /**
   * Asks the engine what it is.
   *
   * @throws RolloutError `engine/unreachable` where nothing answers.
   */
  describe(options?: { signal?: AbortSignal }): Promise<EngineDescription>;
  /** Closes connections. The engine takes no calls afterwards. */
  close(): Promise<void>;
}
