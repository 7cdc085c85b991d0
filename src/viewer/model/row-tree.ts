import type { TreeTurn } from "../../episode/episode.ts";
import { firstDifference } from "./first-difference.ts";
import { kindIndex } from "./token-kind.ts";
import type { RowColumns, RowHeader } from "./row-columns.ts";

/** A training row as a branch of its episode. JSON-able. */
export interface RowBranch {
  readonly row: number;
  readonly tokenCount: number;
  /** Tokens that are trained in it. */
  readonly trainedCount: number;
  readonly turnIndexes: readonly number[];
  /** The earlier row that it goes on from; absent for a root. */
  readonly parent?: number;
  /** How many tokens it begins with that the parent has, too. */
  readonly sharedCount: number;
  /** The turn of the parent's behind which it goes another way; absent where it does so in its prompt. */
  readonly behindTurn?: number;
  /** Why it goes on from no turn before it, where the run says so; absent but for roots. */
  readonly cause?: string;
}

/** A row as far as the tree needs it. */
export interface BranchRow {
  readonly ids: Int32Array;
  readonly header: Pick<RowHeader, "turns">;
  readonly trainedCount: number;
}

/** The row of these columns as the tree needs it. */
export function toBranchRow({
  ids,
  header: { turns },
  mask,
}: Pick<RowColumns, "ids" | "header" | "mask">): BranchRow {
  const trainedCount = mask.reduce((sum, bit) => sum + Number(bit === 1), 0);
  return { ids, header: { turns }, trainedCount };
}

/** Where a row hangs. */
type BranchPlace = Pick<RowBranch, "parent" | "behindTurn" | "cause">;

/**
 * The rows of an episode as a tree. A gateway's episodes say which turn each goes on from; in others
 * each row hangs on the earlier one that it begins like.
 */
export function findBranches(
  rows: readonly BranchRow[],
  tree: readonly TreeTurn[] = [],
): readonly RowBranch[] {
  return rows.map((own, row) => {
    const place = tree.length > 0 ? placeByTree(rows, tree, row) : placeByTokens(rows, row);
    const parent = place.parent === undefined ? undefined : rows[place.parent];
    return {
      row,
      tokenCount: own.ids.length,
      trainedCount: own.trainedCount,
      turnIndexes: own.header.turns.map(({ turnIndex }) => turnIndex),
      sharedCount: parent === undefined ? 0 : sharedLength(own.ids, parent.ids),
      ...place,
    };
  });
}

/** The row that trains the nearest of the turns which this one's first goes on from. */
function placeByTree(
  rows: readonly BranchRow[],
  tree: readonly TreeTurn[],
  row: number,
): BranchPlace {
  const first = rows[row]!.header.turns[0]?.turnIndex;
  let turn = tree.find(({ turnIndex }) => turnIndex !== undefined && turnIndex === first);
  while (turn?.parent !== undefined) {
    turn = tree[turn.parent];
    const behindTurn = turn?.turnIndex;
    const parent = rows.findIndex(({ header }) =>
      header.turns.some(({ turnIndex }) => turnIndex === behindTurn),
    );
    if (behindTurn !== undefined && parent >= 0 && parent < row) return { parent, behindTurn };
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
  return { parent, ...(turn !== undefined && { behindTurn: turn.turnIndex }) };
}

/**
 * Marks as context what a row's prompt shares with another row of the episode and the policy sampled
 * there: it is trained in that row and not in this one.
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
