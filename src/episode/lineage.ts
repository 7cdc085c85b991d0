/** The roles of a conversation in an attempt. */
export const conversationRoles = [
  /** The agent's own conversation with its task. */
  "main",
  /** A conversation that a turn started by a call. */
  "subagent",
  /** A request for a summary that replaces a history. */
  "compaction",
  /** A request for the title of a conversation. */
  "title",
  /** A repeated request. */
  "retry",
  /** No evidence shows its role. */
  "unknown",
] as const;

/** The role of a conversation in an attempt. */
export type ConversationRole = (typeof conversationRoles)[number];

/**
 * The ways in which a turn follows from a turn of another row.
 *
 * **Source:** verifiers 0.4.0, verifiers/v1/semantic.py: the labels of its semantic edges.
 */
export const lineageEdges = [
  "continuation",
  "compaction_attempt",
  "compaction",
  "subagent_call",
  "subagent_return",
  "agent_message",
  "subagent_cancel",
] as const;

/** The way in which a turn follows from a turn of another row. */
export type LineageEdge = (typeof lineageEdges)[number];

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

/** A turn of another row from which a row comes. JSON-able. */
export interface LineageLink {
  /** 0-based index of the row among the attempt's rows with a trained token. */
  readonly row: number;
  /** 0-based index in the `turns` of that row. */
  readonly turn: number;
  readonly edge: LineageEdge;
}

/** The place of a training row in its attempt. JSON-able. */
export interface RowLineage {
  readonly role: ConversationRole;
  /** 0-based index among the attempt's rows with a trained token. */
  readonly row: number;
  /** The number of rows with a trained token. At least 2. */
  readonly rowCount: number;
  /** The number of trained tokens in all rows of the attempt. */
  readonly attemptTokenCount: number;
  /** The turn from which the row comes. Absent if there is no evidence, and for the first row. */
  readonly from?: LineageLink;
}
