import type { TreeTurn } from "../../episode/episode.ts";
import { describeRejection, describeRole, linkWords } from "../../report/rows/lineage-words.ts";

/** A sampled turn of the tree that no row trains. */
export interface UntrainedTurn {
  /** 0-based index in `tree`. */
  readonly node: number;
  /**
   * The trained turn that this turn follows, or that it links to, as an index in the episode. Absent if there is none.
   */
  readonly after?: number;
  readonly sampledTokenCount: number;
  readonly status: "rejected" | "undelivered" | "left-out";
  /** The reason why no row trains the turn, in words. */
  readonly reason: string;
  /** The turn's role in words. Absent without evidence. */
  readonly role?: string;
  /** The turn's link to an earlier turn, in words. Absent without evidence. */
  readonly link?: string;
}

/** Returns the turns that no row trains, in the order in which they were sampled. */
export function untrainedTurns(tree: readonly TreeTurn[]): readonly UntrainedTurn[] {
  return tree.flatMap((turn, node): readonly UntrainedTurn[] => {
    if (turn.turnIndex !== undefined) return [];
    const after = trainedBefore(tree, turn.parent ?? turn.from?.turn);
    return [
      {
        node,
        ...(after !== undefined && { after }),
        sampledTokenCount: turn.sampledTokenCount,
        ...statusOf(turn),
        ...originOf(turn, tree),
      },
    ];
  });
}

function statusOf({ rejected, isDelivered }: TreeTurn): Pick<UntrainedTurn, "status" | "reason"> {
  if (rejected !== undefined) {
    return { status: "rejected", reason: describeRejection(rejected) };
  }
  return isDelivered
    ? {
        status: "left-out",
        reason: "it was sampled for another model, or belongs to a row that is left out",
      }
    : { status: "undelivered", reason: "it never reached the client completely" };
}

function originOf(
  { role, from }: TreeTurn,
  tree: readonly TreeTurn[],
): Pick<UntrainedTurn, "role" | "link"> {
  const before = from === undefined ? undefined : tree[from.turn];
  return {
    ...(role !== undefined && { role: describeRole(role) }),
    ...(from !== undefined &&
      before !== undefined && { link: linkWords(from.edge, placeOf(before, from.turn)) }),
  };
}

function placeOf({ turnIndex }: TreeTurn, node: number): string {
  return turnIndex === undefined ? `an untrained turn (tree ${node})` : `turn ${turnIndex}`;
}

/** Returns the nearest trained turn from a turn of the tree upwards. */
function trainedBefore(tree: readonly TreeTurn[], start: number | undefined): number | undefined {
  let node = start;
  while (node !== undefined) {
    const turn: TreeTurn | undefined = tree[node];
    if (turn?.turnIndex !== undefined) return turn.turnIndex;
    // A parent is an earlier turn, except in a damaged tree.
    node = turn?.parent !== undefined && turn.parent < node ? turn.parent : undefined;
  }
  return undefined;
}
