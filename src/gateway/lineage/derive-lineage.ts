import type { Rejection, TurnLink, TurnRole } from "../../episode/turn-lineage.ts";
import type { TurnNode } from "../tree/turn-node.ts";
import { Conversations } from "./conversations.ts";
import { findRejected } from "./find-rejected.ts";
import { evidenceOf, type LineageTurn, type TurnEvidence } from "./turn-evidence.ts";

/** The place of a turn in the agent's work. */
export interface TurnLineage {
  readonly role: TurnRole;
  /** The earlier turn that it comes from. See `TreeTurn.from`. */
  readonly from?: TurnLink;
  /** The evidence that nothing continued it. */
  readonly rejected?: Rejection;
}

/**
 * Derives the place of each turn in the agent's work from what requests and clients show, never from
 * guesses: a conversation without evidence is `unknown`, and a turn without evidence is not rejected.
 * Later requests can change the result.
 *
 * @param evidence - Of all turns of the session, in sampling order.
 */
export function deriveLineage(evidence: readonly TurnEvidence[]): readonly TurnLineage[] {
  const conversations = new Conversations(evidence);
  const rejected = findRejected(evidence, conversations);
  for (const [turn, rejection] of rejected) {
    if (rejection === "later-summary") conversations.markSummary(turn);
  }
  return evidence.map(({ index }) => {
    const rejection = rejected.get(index);
    const isRetry = rejection === "resumed-sibling" && !conversations.isSummary(index);
    const from = conversations.links.get(index);
    return {
      role: isRetry ? "retry" : conversations.roleOf(index),
      ...(from !== undefined && { from }),
      ...(rejection !== undefined && { rejected: rejection }),
    };
  });
}

/** Derives the lineage of a session's turns. See `deriveLineage()`. */
export function lineageOf(nodes: readonly TurnNode<LineageTurn>[]): readonly TurnLineage[] {
  return deriveLineage(evidenceOf(nodes));
}
