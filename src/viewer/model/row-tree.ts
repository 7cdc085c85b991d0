import { firstDifference } from "./first-difference.ts";
import { kindIndex } from "./token-kind.ts";
import type { RowColumns } from "./row-columns.ts";

/** A training row as a branch of its episode. JSON-able. */
export interface RowBranch {
  readonly row: number;
  readonly tokenCount: number;
  /** Tokens that are trained in it. */
  readonly trainedCount: number;
  readonly turnIndexes: readonly number[];
  /** The earlier row that it shares the most tokens with; absent in the first. */
  readonly parent?: number;
  /** How many tokens it begins with that the parent has, too. */
  readonly sharedCount: number;
  /** The turn of the parent's behind which it goes another way; absent where it does so in its prompt. */
  readonly behindTurn?: number;
  /** What the run says of the branch, where it does. */
  readonly label?: string;
}

type BranchRow = Pick<RowColumns, "ids" | "kinds" | "mask" | "header">;

/** The rows of an episode as a tree: each hangs on the earlier row that it begins like. */
export function findBranches(rows: readonly BranchRow[]): readonly RowBranch[] {
  return rows.map((own, row) => {
    const about = {
      row,
      tokenCount: own.ids.length,
      trainedCount: own.mask.reduce((sum, bit) => sum + Number(bit === 1), 0),
      turnIndexes: own.header.turns.map(({ turnIndex }) => turnIndex),
      ...labelOf(own),
    };
    let best: { readonly parent: number; readonly sharedCount: number } | undefined;
    for (let parent = 0; parent < row; parent++) {
      const sharedCount = sharedLength(own.ids, rows[parent]!.ids);
      if (best === undefined || sharedCount > best.sharedCount) best = { parent, sharedCount };
    }
    if (best === undefined) return { ...about, sharedCount: 0 };
    const turn = rows[best.parent]!.header.turns.findLast(({ end }) => end <= best.sharedCount);
    return { ...about, ...best, ...(turn === undefined ? {} : { behindTurn: turn.turnIndex }) };
  });
}

/**
 * Marks as context what a row's prompt shares with another row of the episode and the policy sampled
 * there: it is trained in that row and not in this one.
 */
export function markContext(own: BranchRow, others: readonly BranchRow[]): void {
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

/** What a gateway's rows say of themselves. */
function labelOf({ header }: BranchRow): { readonly label?: string } {
  const { branch } = header.metadata as { readonly branch?: unknown };
  if (branch === undefined) return {};
  return { label: typeof branch === "string" ? branch : JSON.stringify(branch) };
}
