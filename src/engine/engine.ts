import type { DiscardedSampling } from "../errors.ts";
import type { ColumnParts } from "../columns/column-part.ts";
import type { ColumnName, ColumnSpecs } from "../columns/column-specs.ts";
import type { ChatTurn, ChatTurnRequest } from "./chat/chat-turn.ts";
import type { SamplingParameters } from "./sampling-parameters.ts";
import type { TokenIds } from "./token-id.ts";

export type { DiscardedSampling, SamplingParameters };

/** One call of the policy. */
export interface GenerateRequest {
  /**
   * Exactly the ids recorded so far. In an episode, the list is a view of the record: an engine must not write to the
   * list (`engine/bad-reply`), and must copy the ids that it keeps after the call, for example for a prefix cache.
   */
  readonly promptIds: TokenIds;
  readonly sampling: SamplingParameters;
  /** At least 1. */
  readonly maxNewTokens: number;
  /** Ids that end the turn, including the tokenizer's end-of-sequence id. */
  readonly stopTokenIds: readonly number[];
  /**
   * The constraint that the engine enforces on the sampled text.
   *
   * An engine that cannot enforce it throws `engine/bad-request`. The constraint starts at the first
   * token of a request. If such a turn is interrupted, its sampled ids are discarded and it is
   * sampled again from its start.
   */
  readonly constraint?: SamplingConstraint;
  /**
   * Number of ids of the policy's tokenizer. Prompt ids are below it, and a reply with a larger id
   * is refused (`engine/bad-reply`). If absent, any valid id is accepted.
   */
  readonly vocabularySize?: number;
  /**
   * The side columns that the reply must have. A reply without one is refused (`engine/bad-reply`). An engine that
   * cannot return one throws `engine/bad-request`.
   */
  readonly columns?: ColumnRequest;
  /**
   * The name of the call in records. The name need not be unique: an engine that looks up or aborts requests by id
   * makes its own ids.
   */
  readonly requestId: string;
  /**
   * The id of the session. It stays the same during an episode, so that a router can keep the episode on the worker
   * that has its prefix cached.
   */
  readonly sessionId: string;
}

/** The side columns of a request. */
export interface ColumnRequest {
  readonly specs: ColumnSpecs;
  /**
   * The number of rows that the caller already has of each column with a row for each computed token. The reply has the
   * rows of the tokens from this index to the last but one. At most the number of prompt ids.
   */
  readonly knownRows: number;
}

/** A constraint that the engine enforces by masking the tokens that would violate it. */
export type SamplingConstraint =
  /** A JSON value that the schema allows. */
  | { readonly type: "json-schema"; readonly schema: Readonly<Record<string, unknown>> }
  /** A text that matches the complete expression, in the engine's own dialect. */
  | { readonly type: "regex"; readonly pattern: string }
  /**
   * Free text with parts that start with a literal and then follow a schema, such as a required
   * tool call. The format is xgrammar's `structural_tag`.
   */
  | { readonly type: "structural-tag"; readonly tag: Readonly<Record<string, unknown>> };

/** The reason why sampling ended. */
export type Finish =
  /** A stop id was sampled (`matched` is that id), or the engine names the text it stopped on. */
  | { readonly type: "stop"; readonly matched?: number | string }
  /** `maxNewTokens` ids were sampled, or fewer because the caller cut sampling short. */
  | { readonly type: "length" };

/** A part of a generation that one policy version sampled without interruption. */
export interface GenerationPiece {
  readonly requestId: string;
  /** Number of the generation's ids in this piece. Pieces are in order. */
  readonly tokenCount: number;
  /** The policy version that the engine reported for this piece, or `""` if it reports none. */
  readonly policyVersion: string;
  /**
   * The way the piece ended. `abort`: the engine interrupted the piece and it was resumed, the
   * policy version changed during sampling, or the turn was cut short.
   */
  readonly finish: "stop" | "length" | "abort";
}

/** The result of one policy call. */
export interface Generation {
  /** The sampled ids, including the matched stop id. */
  readonly outputIds: readonly number[];
  /** `logprobs[i]` is that of `outputIds[i]`. Natural logarithms within `logprobRange`. */
  readonly logprobs: readonly number[];
  readonly finish: Finish;
  /**
   * The pieces in order. Their token counts add up to `outputIds.length`. There is only one,
   * unless the engine interrupted the turn or the policy version changed.
   */
  readonly pieces: readonly GenerationPiece[];
  /** The number of prompt tokens that the engine reported for the first piece. */
  readonly promptTokenCount?: number;
  /** The number of prompt tokens that the engine read from its prefix cache. */
  readonly cachedTokenCount?: number;
  /**
   * The time for which the turn's requests waited in the engine's queue, in milliseconds. Absent if the engine does not
   * report it.
   */
  readonly queueMs?: number;
  /**
   * The requested side columns. Columns with a row for each computed token have the rows from the request's `knownRows`
   * to the last token but one. Other columns have a row for each sampled token. Absent if none were requested.
   */
  readonly columns?: ColumnParts;
  /** Requests that were repeated although they may have been sampled. Usually empty. */
  readonly discarded: readonly DiscardedSampling[];
}

/** One or more ids of a turn that arrived together. `logprobs[i]` is that of `tokenIds[i]`. */
export interface StreamedTokens {
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly number[];
}

/** The distribution whose logprobs an engine reports. */
export type LogprobConvention =
  /** Softmax of the logits divided by the temperature, before top-k, top-p and min-p. */
  | "tempered"
  /** Softmax of the raw logits. */
  | "raw"
  /** After every sampling transform. */
  | "processed";

/** The description of a running engine. JSON-able, and recorded with the run. */
export interface EngineDescription {
  /** Such as `sglang`. */
  readonly kind: string;
  readonly url?: string;
  readonly model?: string;
  readonly policyVersion?: string;
  /** The file with the weights, if `model` is the name under which they were downloaded. */
  readonly weightsFile?: string;
  /** The server's release, if it reports one. */
  readonly engineVersion?: string;
  /** The convention of the logprobs. Absent exactly if the engine returns messages, which have no logprobs. */
  readonly logprobConvention?: LogprobConvention;
  /** Set if the convention could not be determined, so that the server's default is assumed. */
  readonly isConventionAssumed?: true;
  /**
   * Maximum length of prompt and output together, in tokens, at least 1, if the engine reports it.
   */
  readonly contextLength?: number;
  /**
   * The side columns that the engine can return. Absent if the engine does not report them: `requireColumns()` then
   * finds out.
   */
  readonly columns?: readonly ColumnName[];
  /** The fields of this description that are assumed, each with the reason. */
  readonly warnings?: readonly string[];
}

/**
 * The load of one worker of an engine. JSON-able. Fields that the worker does not report are
 * absent.
 */
export interface WorkerLoad {
  /** The worker's address, if it has one. */
  readonly url?: string;
  /** Number of requests that are being sampled. */
  readonly runningCount: number;
  /** Number of requests in the queue. */
  readonly waitingCount?: number;
  /** The used share of the memory for keys and values, 0 to 1. */
  readonly keyValueUse?: number;
  /** The capacity of the memory for keys and values, in tokens. */
  readonly keyValueTokens?: number;
}

/** The load of an engine. JSON-able. */
export interface EngineLoad {
  readonly workers: readonly WorkerLoad[];
  /** Addresses that did not report their load, each with the reason. */
  readonly silent: readonly { readonly url: string; readonly reason: string }[];
}

/** A request for the logprobs of given ids. */
export interface ScoreRequest {
  readonly ids: readonly number[];
  /** The first index to score, at least 1. Each id is scored given the ids before it. Default 1. */
  readonly from?: number;
  /** Scores use the softmax at this temperature. 0 counts as 1. */
  readonly sampling: Pick<SamplingParameters, "temperature">;
  /**
   * Number of ids of the policy's tokenizer. `ids` are below it. If absent, any valid id is
   * accepted.
   */
  readonly vocabularySize?: number;
}

/** A request for the logprobs of given ids, and for the most probable ids at the position of each id. */
export interface TopScoreRequest extends ScoreRequest {
  /** Number of ids at each position, 1 to 100. */
  readonly topCount: number;
}

/** The scores of given ids, with the most probable ids at the position of each id. */
export interface TopScores {
  /** `logprobs[i]` is that of `ids[from + i]`. */
  readonly logprobs: readonly number[];
  /**
   * The bytes of ragged rows with logprobs, which `decodeRagged()` reads. Row i has the most probable ids at the
   * position of `ids[from + i]`, best first, at most `topCount`. The id itself may not be among them.
   */
  readonly tops: Uint8Array;
}

/** Signals and callbacks of a policy call. */
export interface GenerateOptions {
  /** When it aborts, the call throws its reason, and the engine stops sampling. */
  readonly signal?: AbortSignal | undefined;
  /**
   * When it aborts, the engine stops sampling and returns the ids it has so far with the finish
   * `length`. An engine that does not support this ignores the signal.
   */
  readonly cutShort?: AbortSignal | undefined;
  /**
   * Called after `cutShort` aborts if the server has no way to stop early, as llama.cpp's server. Its answer comes
   * after all tokens are sampled. An engine that neither stops early nor calls this function counts as hung after a
   * while.
   */
  readonly onNotCutShort?: (() => void) | undefined;
  /**
   * Called when the owner of the policy stops waiting for this turn, for example because a weight
   * update interrupts it. An engine that returns nothing afterwards is not at fault.
   */
  readonly onAbandoned?: (() => void) | undefined;
  /**
   * Called with sampled ids as they arrive, in order, each id once. Together they are the generation's ids.
   *
   * Streamed ids are never withdrawn. If a request breaks later, the turn continues from these ids; if it cannot
   * continue, the call fails. The callback runs between the server's messages and must return immediately: the engine
   * queues nothing for it. An error that it throws fails the call.
   */
  readonly onTokens?: ((tokens: StreamedTokens) => void) | undefined;
  /**
   * Called with `true` when the owner of the policy pauses the call, for example to change the
   * weights, and with `false` when the pause ends. Time limits do not run during the pause.
   */
  readonly onHeld?: ((isHeld: boolean) => void) | undefined;
}

/**
 * An inference engine that takes token ids and returns token ids with their logprobs, or an engine that takes and
 * returns messages (`complete()`).
 */
export interface Engine {
  readonly kind: string;
  /**
   * Samples one turn and resumes it after interruptions by the engine (weight updates). A turn with a rule on its
   * complete output is sampled again from its start; if `onTokens` was already called for it, the call fails with
   * `engine/interrupted`.
   *
   * @throws RolloutError with party `engine`: `engine/unreachable`, `engine/timeout`, `engine/overloaded`,
   *   `engine/bad-request`, `engine/prompt-too-long`, `engine/bad-reply`, `engine/nan`, `engine/interrupted`,
   *   `engine/unauthorized`, `engine/server-error`. The error lists the tokens that were sampled and discarded.
   * @throws UsageError if no engine can sample the request (an id outside the vocabulary, or `maxNewTokens` below 1),
   *   and after `close()`. Nothing is sent.
   * @throws the signal's reason if the signal aborts. The engine then stops sampling.
   */
  generate(request: GenerateRequest, options?: GenerateOptions): Promise<Generation>;
  /**
   * Requests one turn as a message. Present exactly if the engine gives no ids: `generate()` then throws
   * `engine/bad-request`.
   *
   * @throws RolloutError as `generate()` does, and `engine/not-found`, `engine/content-filter` or `engine/budget`.
   * @throws the signal's reason if the signal aborts.
   */
  complete?(request: ChatTurnRequest, options?: { signal?: AbortSignal }): Promise<ChatTurn>;
  /**
   * Scores given ids: `result[i]` is the logprob of `ids[from + i]` under the engine's own
   * convention. With the convention `processed`, only the temperature is applied. Absent if the
   * engine cannot score.
   *
   * @throws RolloutError as `generate()` does.
   * @throws UsageError if the engine cannot score at this temperature under its own convention.
   * @throws the signal's reason if the signal aborts.
   */
  score?(request: ScoreRequest, options?: { signal?: AbortSignal }): Promise<readonly number[]>;
  /**
   * Scores given ids as `score()` does, with the most probable ids at the position of each id. Absent if the engine
   * cannot list them.
   *
   * @throws as `score()`; RolloutError `engine/bad-reply` if the engine lists no ids.
   */
  scoreTop?(request: TopScoreRequest, options?: { signal?: AbortSignal }): Promise<TopScores>;
  /**
   * Requests the engine's description.
   *
   * @throws RolloutError `engine/unreachable` if nothing answers.
   */
  describe(options?: { signal?: AbortSignal }): Promise<EngineDescription>;
  /**
   * Requests the engine's load. Absent if the engine cannot report it. An address that does not
   * answer is listed as silent.
   *
   * @throws the signal's reason if the signal aborts.
   */
  load?(options?: { signal?: AbortSignal }): Promise<EngineLoad>;
  /** Closes connections. The engine accepts no calls afterwards. */
  close(): Promise<void>;
}
