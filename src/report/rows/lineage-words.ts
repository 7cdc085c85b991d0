import type { TurnRole, TurnEdge, Rejection } from "../../episode/turn-lineage.ts";

/** The roles in words. */
const roleWords: Readonly<Record<TurnRole, string>> = {
  main: "main",
  subagent: "sub-agent",
  compaction: "compaction",
  title: "title",
  retry: "retry",
  unknown: "role unknown",
};

const edgeWords: Readonly<Record<TurnEdge, string>> = {
  continuation: "continues",
  compaction_attempt: "asked for a summary after",
  compaction: "after compaction by",
  subagent_call: "called by",
  subagent_return: "after the return of",
  agent_message: "after a message of",
  subagent_cancel: "cancelled by",
};

/**
 * Describes a link to an earlier turn. Returns an unknown kind of link as it is.
 *
 * @param place - The turn, for example `turn 3 of row 0`.
 */
export function linkWords(edge: string, place: string): string {
  return `${edgeWords[edge as TurnEdge] ?? `${edge}:`} ${place}`;
}

const rejectionWords: Readonly<Record<Rejection, string>> = {
  "resumed-sibling": "the same request was sampled again, and that reply was continued",
  "later-summary": "another summary of the same history was used",
  client: "the client marks it as a compaction, and its conversation continued without it",
};

/** Describes the evidence that nothing continued a turn. Returns unknown evidence as it is. */
export function describeRejection(rejection: string): string {
  return rejectionWords[rejection as Rejection] ?? rejection;
}

/** Describes a role. Returns an unknown role as it is. */
export function describeRole(role: string): string {
  return roleWords[role as TurnRole] ?? role;
}
