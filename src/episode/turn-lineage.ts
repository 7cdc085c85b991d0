/** The parts that a turn can play in an agent's work. */
export const turnRoles = [
  /** The agent's own conversation. */
  "main",
  /** A conversation that a call of another one started. */
  "subagent",
  /** A summary that was meant to replace a conversation's history. */
  "compaction",
  /** A title for a conversation. */
  "title",
  /** A reply to a request that was sampled again, and that nothing continues. */
  "retry",
  /** Nothing shows what the conversation is for. */
  "unknown",
] as const;

/** The part that a turn plays in an agent's work. */
export type TurnRole = (typeof turnRoles)[number];

/** The kinds of links between turns, in the words of verifiers (`semantic_parents`). */
export const turnEdges = [
  /** The turn continues the other turn's conversation. */
  "continuation",
  /** The turn summarises the conversation up to the other turn. */
  "compaction_attempt",
  /** The conversation starts with the other turn's summary. */
  "compaction",
  /** A call in the other turn started the conversation. */
  "subagent_call",
  /** The turn received the other turn's text, the last one of a sub-agent. */
  "subagent_return",
  "agent_message",
  "subagent_cancel",
] as const;

/** The kind of link between two turns. */
export type TurnEdge = (typeof turnEdges)[number];

/** The kinds of evidence that nothing continued a turn. */
export const rejections = [
  /** The same request was sampled again, and that turn was continued. */
  "resumed-sibling",
  /** Another summary of the same history was used. */
  "later-summary",
  /** The client marks the turn as a compaction, and its conversation continued without it. */
  "client",
] as const;

/** The evidence that nothing continued a turn. */
export type Rejection = (typeof rejections)[number];

/** A link to an earlier turn. */
export interface TurnLink {
  /** Index of the earlier turn in the episode's `tree`. */
  readonly turn: number;
  readonly edge: TurnEdge;
}
