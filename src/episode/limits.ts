/** Limits of an episode. Each wait in an episode ends at one of them. */
export interface EpisodeLimits {
  /** Number of turns. Default 30, as in τ-bench. */
  readonly maxTurns: number;
  /** Number of ids sampled in one turn. Default 1,024. */
  readonly maxTokensPerTurn: number;
  /**
   * Number of ids after the first prompt, sampled or not, in the complete episode. The prompts of a rewritten history
   * do not count, and neither do the turns before a fork. Default unlimited.
   */
  readonly maxEpisodeTokens: number;
  /**
   * Number of ids of prompt and output together. Default: the context length that the engine reports. An answer of more
   * than 4,000,000 characters exceeds any limit, and is not encoded. If no context length is known, such an answer is a
   * failure of the party that gave it.
   */
  readonly maxContextTokens: number;
  /** Number of turns with malformed calls only, after which the episode ends. Default 10. */
  readonly maxFormatErrors: number;
  /**
   * Time limit of the episode, in milliseconds. Default 30 minutes. After it, the policy gets no more requests, and
   * sampling is cut short. A user, a tool or an engine call under way keeps its own limit.
   *
   * Servers that cannot end a turn early sample it to its end: llama.cpp, vLLM's completions outside development mode,
   * and workers of a router that cannot be reached.
   */
  readonly episodeTimeoutMs: number;
  /** Time limit of one engine call, in milliseconds. Default 25 minutes. HTTP engines have a shorter limit. */
  readonly engineTimeoutMs: number;
  /**
   * Time that the engine has to return its ids after the deadline or an interruption, in milliseconds. Default 10
   * seconds.
   *
   * An engine counts as hung if it does not answer within this time after the deadline. It also counts as hung if it
   * answers without ids, although it was called at least this long before the deadline. A server that cannot end a turn
   * early has `engineTimeoutMs` instead, and its ids are kept.
   */
  readonly graceTimeoutMs: number;
  /**
   * Time limit of one user reply, in milliseconds. It covers all calls to the user's model with their queues, retries
   * and pauses. Default 2 minutes.
   */
  readonly userTimeoutMs: number;
  /**
   * Time limit of a tool call, of opening the world and of disposing of it, in milliseconds. Default 1 minute. While
   * the world waits for the user, `userTimeoutMs` applies instead.
   */
  readonly toolTimeoutMs: number;
  /** Time limit of the score, in milliseconds. Default 1 minute. */
  readonly scoreTimeoutMs: number;
  /**
   * Effect of a turn that reaches its length limit: `end` ends the episode, `close-and-continue` closes the turn and
   * answers it.
   */
  readonly onLength: "end" | "close-and-continue";
}

/** The default limits. */
export const defaultLimits: EpisodeLimits = {
  maxTurns: 30,
  maxTokensPerTurn: 1024,
  maxEpisodeTokens: Infinity,
  maxContextTokens: Infinity,
  maxFormatErrors: 10,
  episodeTimeoutMs: 30 * 60_000,
  engineTimeoutMs: 25 * 60_000,
  graceTimeoutMs: 10_000,
  userTimeoutMs: 2 * 60_000,
  toolTimeoutMs: 60_000,
  scoreTimeoutMs: 60_000,
  onLength: "end",
};
