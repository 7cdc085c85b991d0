import { pathTo, recordPath, type PathTurn } from "./record-path.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import type { Segment } from "../../trajectory/segment.ts";
import type { TurnNode } from "./turn-node.ts";

/** The values of `RowChoice`. */
export const rowChoices = ["all", "main", "longest"] as const;

/**
 * The paths through a session that become rows: all of them (`all`), the newest one of the agent's first conversation
 * (`main`), or the longest one (`longest`).
 */
export type RowChoice = (typeof rowChoices)[number];

/** One training row: a path through the tree. */
export interface TreeRow<Record extends PathTurn> {
  readonly segment: Segment;
  /** The turns that are trained in this row, in order. */
  readonly trained: readonly TurnNode<Record>[];
  /** All turns of the path, from the root. */
  readonly path: readonly TurnNode<Record>[];
}

/**
 * Returns the training rows of a session: one for each leaf of the tree. A turn that several rows share is trained in
 * the newest row. In the other rows it is a part of the prompt, with mask 0. Turns that the client never received
 * completely are left out unless a later turn answers them or uses their text. Rejected turns, which no turn continues,
 * are left out before shared turns are assigned.
 *
 * @param nodes - All turns of the session in sampling order.
 * @param options.choice - Default: all rows.
 * @param options.rejected - Indexes of the turns that must not be trained. Default: none.
 * @param options.received - Indexes of turns that the client has received, although their delivery was not recorded.
 *   Default: none.
 * @param options.isMain - True for the turns of the agent's own conversation, by index, as opposed to titles. Default:
 *   all.
 */
export function collectRows<Record extends PathTurn>(
  nodes: readonly TurnNode<Record>[],
  {
    choice = "all",
    rejected = new Set(),
    received = new Set(),
    isMain = () => true,
  }: {
    readonly choice?: RowChoice;
    readonly rejected?: ReadonlySet<number>;
    readonly received?: ReadonlySet<number>;
    readonly isMain?: (turn: number) => boolean;
  } = {},
): readonly TreeRow<Record>[] {
  const recorder = new TrajectoryRecorder();
  const kept = nodes.filter(
    ({ index, isDelivered }) => (isDelivered || received.has(index)) && !rejected.has(index),
  );
  const paths = chooseRows(findPaths(kept), { choice, isMain }).map(({ path, firstTrained }) => {
    const trained = path.slice(firstTrained).filter(({ record }) => record.isTrainable);
    // The row ends with its last trained turn.
    const recorded = path.slice(0, path.indexOf(trained.at(-1)!) + 1);
    recordPath(recorded, { recorder, trained: new Set(trained) });
    return { path, trained };
  });
  const segments = paths.length === 0 ? [] : recorder.toSegments();
  return paths.map(({ path, trained }, index) => ({ segment: segments[index]!, path, trained }));
}

interface RowPath<Record extends PathTurn> {
  readonly path: readonly TurnNode<Record>[];
  /** Index of the first turn that is trained in the row. */
  readonly firstTrained: number;
}

/**
 * Returns the path of each row: from the root to the newest turn of a branch.
 *
 * @param nodes - The turns that rows may contain, in sampling order.
 */
function findPaths<Record extends PathTurn>(
  nodes: readonly TurnNode<Record>[],
): readonly RowPath<Record>[] {
  /** The newest kept leaf below each turn, by the turn's index. */
  const newest = new Map<number, number>();
  for (const node of nodes.toReversed()) {
    const below = node.children.flatMap((child) => newest.get(child.index) ?? []);
    newest.set(node.index, below.length === 0 ? node.index : Math.max(...below));
  }
  const leaves = nodes.filter(({ index }) => newest.get(index) === index);
  return leaves
    .flatMap((leaf): RowPath<Record>[] => {
      const path = pathTo(leaf);
      const firstTrained = path.findIndex(
        (node) => newest.get(node.index) === leaf.index && node.record.isTrainable,
      );
      return firstTrained === -1 ? [] : [{ path, firstTrained }];
    })
    .toSorted(
      (left, right) => left.path[left.firstTrained]!.index - right.path[right.firstTrained]!.index,
    );
}

function chooseRows<Record extends PathTurn>(
  rows: readonly RowPath<Record>[],
  { choice, isMain }: { readonly choice: RowChoice; readonly isMain: (turn: number) => boolean },
): readonly RowPath<Record>[] {
  if (choice === "all" || rows.length === 0) return rows;
  if (choice === "longest") {
    const longest = rows.reduce((left, right) =>
      sampledCount(right) > sampledCount(left) ? right : left,
    );
    return [longest];
  }
  const main = rows.find(({ path }) => isMain(path[0]!.index)) ?? rows[0]!;
  const root = main.path[0];
  return [rows.findLast(({ path }) => path[0] === root)!];
}

function sampledCount({ path, firstTrained }: RowPath<PathTurn>): number {
  return path
    .slice(firstTrained)
    .reduce((sum, { record: { generation } }) => sum + generation.outputIds.length, 0);
}
