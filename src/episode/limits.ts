/** How far an episode may go. Every wait of an episode ends by one of these. */
export interface EpisodeLimits {
  /** Policy calls. Default 30, as τ-bench's. */
  readonly maxTurns: number;
  /** Ids sampled in one turn. Default 1,024. */
  readonly maxTokensPerTurn: number;
  /**
   * Ids after the first prompt, sampled or not, over the whole episode: where its history is rewritten,
   * the rewritten prompts do not count, and a fork's part before it does. Default unlimited.
   */
  readonly maxEpisodeTokens: number;
  /**
   * Prompt and output together; what the engine names as its context length, where it does. An answer of more than
   * 4,000,000 characters, which are not encoded, fills any; where no length is known it is its giver's failure.
   */
  readonly maxContextTokens: number;
  /** Turns without one well-formed call among malformed ones. Default 10. */
  readonly maxFormatErrors: number;
  /**
   * Whole episode, milliseconds. Default 30 minutes. When it is over, the policy is asked for nothing
   * more, and what it is sampling is cut short; a user, a tool or an engine that keeps the episode
   * waiting is held to its own limit. So is an engine whose server cannot be told to end a turn early (llama.cpp,
   * vLLM's completions outside development mode, workers of a router that cannot be reached): it samples the turn
   * to its end.
   */
  readonly episodeTimeoutMs: number;
  /** One turn of the engine's, milliseconds. Default 25 minutes; HTTP engines have a shorter one. */
  readonly engineTimeoutMs: number;
  /**
   * How long the engine may take to hand over what it sampled when the episode's time is over, or when it
   * is interrupted, milliseconds. Default 10 seconds. When the time is over, an engine that was asked at
   * least as long before, was told to end the turn and has nothing to show was hung; one whose server cannot be
   * told has up to `engineTimeoutMs`, and what comes is kept.
   */
  readonly graceTimeoutMs: number;
  /**
   * One user reply, milliseconds: with all calls of the user's model that it takes, their places in
   * the queue, attempts and pauses. Default 2 minutes.
   */
  readonly userTimeoutMs: number;
  /**
   * One tool call, also opening and disposing of the world, milliseconds. Default 1 minute. While it waits for the
   * user, `userTimeoutMs` counts in its place.
   */
  readonly toolTimeoutMs: number;
  /** Scoring, milliseconds. Default 1 minute. */
  readonly scoreTimeoutMs: number;
  /** What a turn that was cut by length does: ends the episode, or is closed and answered. */
  readonly onLength: "end" | "close-and-continue";
}

/** What an episode may take where nothing else is said. */
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
