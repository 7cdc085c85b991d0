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
  /**
   * Exactly the ids recorded so far. The list is the episode's own, which grows with its turns: whoever keeps it
   * beyond the call, as for a cache of prefixes, keeps a copy, and nobody writes into it (`engine/bad-reply`).
   */
  readonly promptIds: readonly number[];
  readonly sampling: SamplingParameters;
  /** At least 1. */
  readonly maxNewTokens: number;
  /** Ids that end the turn, the tokenizer's end-of-sequence id among them. */
  readonly stopTokenIds: readonly number[];
  /**
   * Texts that end the turn where the sampled text comes to hold one. The ids stay whole: they hold
   * what completed the text, and the finish names it. Not every engine can: `engine/bad-request`. A turn that
   * has some is sampled anew where it is interrupted, as one with a `constraint` is: the engine looks for them in each
   * request's own output.
   */
  readonly stopTexts?: readonly string[];
  /**
   * What the sampled text is held to. Not every engine can: `engine/bad-request`. It begins with a request's own first
   * token, so what was sampled of a turn that is interrupted is discarded, and the turn sampled anew.
   */
  readonly constraint?: SamplingConstraint;
  /**
   * Number of ids that the policy's tokenizer has. A prompt's ids are below it, and a reply with an id
   * that is not is refused (`engine/bad-reply`): nothing could read it. Where absent, any id is taken.
   */
  readonly vocabularySize?: number;
  /**
   * Names the call in what is recorded of it. Several calls may have one at once, of this program or of
   * others at the same server: an engine that tells requests apart by their ids, or aborts by them, makes
   * ids of its own.
   */
  readonly requestId: string;
  /** Stable over an episode, so that a router can keep it on one worker's prefix cache. */
  readonly sessionId: string;
}

/** A form that the engine holds sampling to, by leaving out the tokens that would break it. */
export type SamplingConstraint =
  /** A JSON value that the schema allows. */
  | { readonly type: "json-schema"; readonly schema: Readonly<Record<string, unknown>> }
  /** A text that the whole expression matches, in the engine's own dialect. */
  | { readonly type: "regex"; readonly pattern: string }
  /**
   * Free text with parts that begin with a literal and then keep to a schema, such as a required tool
   * call; as `structural_tag` of xgrammar describes them.
   */
  | { readonly type: "structural-tag"; readonly tag: Readonly<Record<string, unknown>> };

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
  /** How long its requests waited in the engine until it took them up, in milliseconds, where it says. */
  readonly queueMs?: number;
  /** Requests that were repeated though they may have been sampled; empty in the ordinary case. */
  readonly discarded: readonly DiscardedSampling[];
}

/** Ids of a turn that came together. `logprobs[i]` belongs to `tokenIds[i]`. At least one. */
export interface StreamedTokens {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
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
  /** The file that the weights came from, where `model` is the name by which it was fetched to this machine. */
  readonly weightsFile?: string;
  /** The server's own release, where it says so. */
  readonly engineVersion?: string;
  readonly logprobConvention: LogprobConvention;
  /** The convention could not be found out, and is the server's default. */
  readonly isConventionAssumed?: true;
  /** Longest prompt and output together, where the engine says so: a whole number, at least 1. */
  readonly contextLength?: number;
  /** What of this is assumed rather than known, and why. */
  readonly warnings?: readonly string[];
}

/** How busy one worker of an engine is. JSON-able; what it does not say is absent. */
export interface WorkerLoad {
  /** Its address, where it has one. */
  readonly url?: string;
  /** Requests that are sampled. */
  readonly runningCount: number;
  /** Requests that wait for their turn. */
  readonly waitingCount?: number;
  /** How much of the memory for keys and values is in use, 0 to 1. */
  readonly keyValueUse?: number;
  /** How many tokens that memory holds in all. */
  readonly keyValueTokens?: number;
}

/** How busy an engine is. JSON-able. */
export interface EngineLoad {
  readonly workers: readonly WorkerLoad[];
  /** Addresses that did not say, and why. */
  readonly silent: readonly { readonly url: string; readonly reason: string }[];
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
   * Told once `cutShort` is aborted where the server cannot be told to stop early, such as llama.cpp's, which has no
   * path for it: its answer comes when it has sampled all. An engine that says nothing and does not answer is
   * taken for hung after a while.
   */
  readonly onNotCutShort?: (() => void) | undefined;
  /**
   * Told where whoever owns the policy waits no longer for what is being sampled, as an update of its weights that
   * interrupts does after a while: that nothing is handed over of it is then no fault of the engine's.
   */
  readonly onGivenUp?: (() => void) | undefined;
  /**
   * Told of sampled ids as they come, in order, each once; joined they are the generation's. What was
   * told is never taken back: where a request breaks afterwards, the turn goes on from these ids as it
   * does after an interruption, and where it cannot, the call fails. It is called between the server's
   * messages and keeps them waiting, so it must return at once: nothing is queued for it here, and who
   * hands on to a slow reader keeps a bounded queue of their own. What it throws, the call throws.
   */
  readonly onTokens?: ((tokens: StreamedTokens) => void) | undefined;
  /**
   * Told with `true` when the call is held up by whoever owns the policy, such as while its weights are
   * changed, and with `false` when it is not any more: no time limit runs meanwhile.
   */
  readonly onHeld?: ((isHeld: boolean) => void) | undefined;
}

/** An inference engine that takes token ids and returns token ids with their logprobs. */
export interface Engine {
  readonly kind: string;
  /**
   * Samples one turn. Interruptions by the engine (weight updates) are resumed inside; a turn of which something is
   * demanded as a whole begins anew there, and fails as `engine/interrupted` where `onTokens` was told of it.
   *
   * @throws RolloutError with party `engine`: `engine/unreachable`, `engine/timeout`,
   *   `engine/overloaded`, `engine/bad-request`, `engine/prompt-too-long`, `engine/bad-reply`,
   *   `engine/nan`, `engine/interrupted`, `engine/unauthorized`, `engine/server-error`; it carries
   *   what was sampled and is discarded.
   * @throws UsageError for what no engine can sample: an id that is not of the vocabulary, or no room for a
   *   single id; nothing is sent. The same after `close()`.
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
  /**
   * Asks how busy the engine is. Absent where it cannot say. An address that does not answer is listed
   * as silent.
   *
   * @throws the signal's reason where the signal is aborted.
   */
  load?(options?: { signal?: AbortSignal }): Promise<EngineLoad>;
  /** Closes connections. The engine takes no calls afterwards. */
  close(): Promise<void>;
}
