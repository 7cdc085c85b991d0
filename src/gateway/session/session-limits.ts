/** Limits of sessions. */
export interface SessionLimits {
  /** Maximum number of turns in a session, over all branches. Default 1,000. */
  readonly maxTurns: number;
  /** Maximum number of sampled ids in a turn. Default 4,096. */
  readonly maxTokensPerTurn: number;
  /** Maximum number of sampled ids in a session. Default unlimited. */
  readonly maxSessionTokens: number;
  /** Maximum of prompt and output together, in tokens. Default: the engine's. */
  readonly maxContextTokens: number;
  /** Maximum number of turns that a session samples at the same time. Default 64. */
  readonly maxParallelTurns: number;
  /** Maximum number of concurrent requests over all sessions. Default 4,096. */
  readonly maxRequests: number;
  /** Maximum number of open sessions. Default 100,000. */
  readonly maxSessions: number;
  /** Milliseconds without a request after which a session ends. Default one hour. */
  readonly idleTimeoutMs: number;
  /** Time limit of the engine for a turn, in milliseconds. Default 25 minutes. */
  readonly engineTimeoutMs: number;
}

export const defaultSessionLimits: SessionLimits = {
  maxTurns: 1000,
  maxTokensPerTurn: 4096,
  maxSessionTokens: Infinity,
  maxContextTokens: Infinity,
  maxParallelTurns: 64,
  maxRequests: 4096,
  maxSessions: 100_000,
  idleTimeoutMs: 60 * 60_000,
  engineTimeoutMs: 25 * 60_000,
};
