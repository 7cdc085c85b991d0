/** The roles that a turn can have in an agent's work. */
export const turnRoles = [
  /** The agent's own conversation. */
  "main",
  /** A conversation that a call in another conversation started. */
  "subagent",
  /** A summary that was meant to replace a conversation's history. */
  "compaction",
  /** A title for a conversation. */
  "title",
  /** A reply to a request that was sampled again. No turn continues the reply. */
  "retry",
  /** A conversation without evidence of its purpose. */
  "unknown",
] as const;

/** The role of a turn in an agent's work. */
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
  /** The turn received the last text of a sub-agent, which the other turn sampled. */
  "subagent_return",
  "agent_message",
  "subagent_cancel",
] as const;

/** The kind of link between two turns. */
export type TurnEdge = (typeof turnEdges)[number];

/** The kinds of evidence that no later turn continued or used a turn. */
export const rejections = [
  /** The client requested the turn again, and continued the other reply. */
  "resumed-sibling",
  /** The client used another summary of the same history. */
  "later-summary",
  /** The client marks the turn as a compaction, and its conversation continued without it. */
  "client",
] as const;

/** The evidence that no later turn continued or used a turn. */
export type Rejection = (typeof rejections)[number];

/** A link to an earlier turn. */
export interface TurnLink {
  /** Index of the earlier turn in the episode's `tree`. */
  readonly turn: number;
  readonly edge: TurnEdge;
}
