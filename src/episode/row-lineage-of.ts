import { countTrainedIn } from "../trajectory/count-trained.ts";
import type { Segment } from "../trajectory/segment.ts";
import type { Episode, TreeTurn } from "./episode.ts";
import type { RowLineage } from "./row-lineage.ts";

/**
 * Returns the lineage of each segment: `undefined` for segments without a trained token, and for all
 * segments if only one has trained tokens.
 */
export function rowLineageOf({
  segments,
  tree,
}: Pick<Episode, "segments" | "tree">): readonly (RowLineage | undefined)[] {
  const counts = segments.map(({ turns }) => countTrainedIn(turns));
  const rowCount = counts.filter((count) => count > 0).length;
  if (rowCount < 2) return segments.map(() => undefined);
  const attemptTokenCount = counts.reduce((sum, count) => sum + count, 0);
  const rows = segments.filter((_, index) => counts[index]! > 0);
  const places = tree === undefined ? placesInOrder(rows) : placesInTree(rows, tree);
  let row = 0;
  return counts.map((count) => {
    if (count === 0) return undefined;
    const { role, from } = places[row]!;
    const about = { role, row, rowCount, attemptTokenCount };
    row += 1;
    return from === undefined ? about : { ...about, from };
  });
}

type RowPlace = Pick<RowLineage, "role" | "from">;

/**
 * Returns the lineage of rows without a tree. Each row continues the row before it, after its history was rewritten.
 */
function placesInOrder(rows: readonly Pick<Segment, "turns">[]): readonly RowPlace[] {
  return rows.map((_, index): RowPlace => {
    if (index === 0) return { role: "main" };
    const turn = rows[index - 1]!.turns.length - 1;
    return { role: "main", from: { row: index - 1, turn, edge: "continuation" } };
  });
}

function placesInTree(
  rows: readonly Pick<Segment, "turns">[],
  tree: readonly TreeTurn[],
): readonly RowPlace[] {
  /** The row and index of each trained turn, by the turn's index in the episode. */
  const places = new Map(
    rows.flatMap(({ turns }, row) =>
      turns.map(({ turnIndex }, turn) => [turnIndex, { row, turn }] as const),
    ),
  );
  const nodes = new Map(tree.map((node) => [node.turnIndex, node]));
  return rows.map(({ turns }, row): RowPlace => {
    const node = nodes.get(turns[0]!.turnIndex);
    if (node === undefined) return { role: "unknown" };
    const role = node.role ?? "unknown";
    const link = linkOf(node, tree);
    const index = link === undefined ? undefined : tree[link.turn]?.turnIndex;
    const place = index === undefined ? undefined : places.get(index);
    // A link to a turn that no row trains, or to the row itself, says nothing about rows.
    if (link === undefined || place === undefined || place.row === row) return { role };
    return { role, from: { ...place, edge: link.edge } };
  });
}

/** Returns the turn from which a row's first turn follows: its own link, or the turn that it continues. */
function linkOf(node: TreeTurn, tree: readonly TreeTurn[]): TreeTurn["from"] {
  if (node.from !== undefined) return node.from;
  let turn = node.parent;
  while (turn !== undefined) {
    const before: TreeTurn | undefined = tree[turn];
    if (before?.turnIndex !== undefined) break;
    turn = before?.parent;
  }
  return turn === undefined ? undefined : { turn, edge: "continuation" };
}
