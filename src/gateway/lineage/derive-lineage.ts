import type { Rejection, TurnLink, TurnRole } from "../../episode/turn-lineage.ts";
import type { TurnNode } from "../tree/turn-node.ts";
import { Conversations } from "./conversations.ts";
import { findRejected } from "./find-rejected.ts";
import { evidenceOf, type LineageTurn, type TurnEvidence } from "./turn-evidence.ts";

/** The role of a turn in the agent's work, and the earlier turns that it depends on. */
export interface TurnLineage {
  readonly role: TurnRole;
  /** The earlier turn from which this turn follows. See `TreeTurn.from`. */
  readonly from?: TurnLink;
  /** The evidence that no later turn continued or used this turn. Absent if there is none. */
  readonly rejected?: Rejection;
}

/**
 * Derives the lineage of each turn from facts in the requests and from statements of clients, never from guesses: a
 * conversation without evidence is `unknown`, and a turn without evidence is not rejected. Later requests can change
 * the result.
 *
 * @param evidence - The evidence of all turns of the session, in sampling order.
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
