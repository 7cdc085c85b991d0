/** How far a session may go. */
export interface SessionLimits {
  /** Turns of one session, over all of its branches. Default 1,000. */
  readonly maxTurns: number;
  /** Ids sampled in one turn, whatever the client asks for. Default 4,096. */
  readonly maxTokensPerTurn: number;
  /** Ids sampled in one session. Default unlimited. */
  readonly maxSessionTokens: number;
  /** Prompt and output together. Default what the engine names. */
  readonly maxContextTokens: number;
  /** Turns of one session that are sampled at once. Default 64. */
  readonly maxParallelTurns: number;
  /** Requests that wait for the engine or are sampled at once, over all sessions. Default 4,096. */
  readonly maxRequests: number;
  /** Sessions that are open at once. Default 100,000. */
  readonly maxSessions: number;
  /** A session that nobody asks anything for so long is ended, milliseconds. Default an hour. */
  readonly idleTimeoutMs: number;
  /** One turn of the engine's, milliseconds. Default 25 minutes. */
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
