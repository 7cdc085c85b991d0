import type { TreeTurn } from "../../episode/episode.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { firstDifference } from "./first-difference.ts";
import { kindIndex } from "./token-kind.ts";
import { originOf, type RowOrigin } from "./row-origin.ts";
import type { RowColumns, RowHeader } from "./row-columns.ts";

/** A training row as a branch of its episode. JSON-able. */
export interface RowBranch extends RowOrigin {
  readonly row: number;
  readonly tokenCount: number;
  /** The number of tokens that are trained in this row. */
  readonly trainedCount: number;
  readonly turnIndexes: readonly number[];
  /** The index of the earlier row that this row continues. Absent for a root. */
  readonly parent?: number;
  /** The number of leading tokens that the row shares with its parent. */
  readonly sharedCount: number;
  /** The parent's turn after which the row branches. Absent if the row branches in the prompt. */
  readonly afterTurn?: number;
  /** The cause of a new root, if the run records it. Absent for other rows. */
  readonly cause?: string;
}

/** The parts of a row that the tree needs. */
export interface BranchRow {
  readonly ids: Int32Array;
  readonly header: Pick<RowHeader, "turns">;
  readonly trainedCount: number;
}

/** Returns the parts of a row that the tree needs. */
export function toBranchRow({
  ids,
  header: { turns },
  mask,
}: Pick<RowColumns, "ids" | "header" | "mask">): BranchRow {
  const trainedCount = mask.reduce((sum, bit) => sum + Number(bit === 1), 0);
  return { ids, header: { turns }, trainedCount };
}

/** The position of a row in the tree. */
type BranchPlace = Pick<RowBranch, "parent" | "afterTurn" | "cause">;

/**
 * Returns the rows of an episode as a tree. The episodes of a gateway record which turn each turn
 * continues. In other episodes, the parent of a row is the earlier row with the same beginning.
 */
export function findBranches(
  rows: readonly BranchRow[],
  { tree = [], lineage = [] }: Partial<Pick<EpisodeRow, "tree" | "lineage">> = {},
): readonly RowBranch[] {
  const turnIndexes = rows.map(({ header }) => header.turns.map(({ turnIndex }) => turnIndex));
  return rows.map((own, row) => {
    const place = tree.length > 0 ? placeByTree(rows, tree, row) : placeByTokens(rows, row);
    const parent = place.parent === undefined ? undefined : rows[place.parent];
    return {
      row,
      tokenCount: own.ids.length,
      trainedCount: own.trainedCount,
      turnIndexes: turnIndexes[row]!,
      sharedCount: parent === undefined ? 0 : sharedLength(own.ids, parent.ids),
      ...place,
      ...originOf(row, lineage, turnIndexes),
    };
  });
}

/** Finds the row that trains the nearest ancestor of this row's first turn. */
function placeByTree(
  rows: readonly BranchRow[],
  tree: readonly TreeTurn[],
  row: number,
): BranchPlace {
  const first = rows[row]!.header.turns[0]?.turnIndex;
  let turn = tree.find(({ turnIndex }) => turnIndex !== undefined && turnIndex === first);
  while (turn?.parent !== undefined) {
    turn = tree[turn.parent];
    const afterTurn = turn?.turnIndex;
    const parent = rows.findIndex(({ header }) =>
      header.turns.some(({ turnIndex }) => turnIndex === afterTurn),
    );
    if (afterTurn !== undefined && parent >= 0 && parent < row) return { parent, afterTurn };
  }
  return turn?.cause === undefined ? {} : { cause: turn.cause };
}

function placeByTokens(rows: readonly BranchRow[], row: number): BranchPlace {
  const { ids } = rows[row]!;
  let best: { readonly parent: number; readonly sharedCount: number } | undefined;
  for (let parent = 0; parent < row; parent++) {
    const sharedCount = sharedLength(ids, rows[parent]!.ids);
    if (best === undefined || sharedCount > best.sharedCount) best = { parent, sharedCount };
  }
  if (best === undefined) return {};
  const { parent, sharedCount } = best;
  const turn = rows[parent]!.header.turns.findLast(({ end }) => end <= sharedCount);
  return { parent, ...(turn !== undefined && { afterTurn: turn.turnIndex }) };
}

/**
 * Marks tokens as context that the policy sampled, if they are in this row's prompt and in another
 * row of the episode. They are trained in the other row.
 */
export function markContext(
  own: Pick<RowColumns, "ids" | "kinds">,
  others: readonly Pick<BranchRow, "ids" | "header">[],
): void {
  for (const { ids, header } of others) {
    const shared = sharedLength(own.ids, ids);
    for (const { start, end } of header.turns) {
      if (end > shared) break;
      for (let index = start; index < end; index++) {
        if (own.kinds[index] === kindIndex.prompt) own.kinds[index] = kindIndex.context;
      }
    }
  }
}

function sharedLength(left: Int32Array, right: Int32Array): number {
  return firstDifference(left, right) ?? left.length;
}
