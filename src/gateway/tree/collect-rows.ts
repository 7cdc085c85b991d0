import type { EnvironmentDelta } from "../../renderer/renderer.ts";
import { idsBefore, pathTo, type SampledTurn } from "./path-ids.ts";
import { TrajectoryRecorder, type Segment } from "../../trajectory/trajectory-recorder.ts";
import type { TurnNode } from "./turn-node.ts";

/** The values of `RowChoice`. */
export const rowChoices = ["all", "main", "longest"] as const;

/**
 * The paths through a session that become rows: all, the newest of the first conversation, or the
 * longest.
 */
export type RowChoice = (typeof rowChoices)[number];

/** One training row: a path through the tree. */
export interface TreeRow<Record extends SampledTurn> {
  readonly segment: Segment;
  /** The turns that are trained in this row, in order. */
  readonly trained: readonly TurnNode<Record>[];
  /** All turns of the path, from the root. */
  readonly path: readonly TurnNode<Record>[];
}

/**
 * Returns the training rows of a session: one for each leaf of the tree. A turn that several rows
 * share is trained in the newest one and belongs to the prompt of the others, with mask 0. Turns
 * that the client never received completely are left out unless a later turn answers them.
 *
 * @param nodes - All turns of the session in sampling order.
 */
export function collectRows<Record extends SampledTurn>(
  nodes: readonly TurnNode<Record>[],
  choice: RowChoice = "all",
): readonly TreeRow<Record>[] {
  const recorder = new TrajectoryRecorder();
  const paths = chooseRows(findPaths(nodes), choice);
  for (const { path, firstTrained } of paths) record(recorder, path, firstTrained);
  const segments = paths.length === 0 ? [] : recorder.toSegments();
  return paths.map(({ path, firstTrained }, index) => ({
    segment: segments[index]!,
    path,
    trained: path.slice(firstTrained).filter((node) => node.record.isTrainable),
  }));
}

interface RowPath<Record extends SampledTurn> {
  readonly path: readonly TurnNode<Record>[];
  /** Index of the first turn that is trained in the row. */
  readonly firstTrained: number;
}

function findPaths<Record extends SampledTurn>(
  nodes: readonly TurnNode<Record>[],
): readonly RowPath<Record>[] {
  /** The newest kept leaf below each turn, by the turn's index. */
  const newest = new Map<number, number>();
  for (const node of nodes.toReversed()) {
    if (!node.isDelivered) continue;
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

function chooseRows<Record extends SampledTurn>(
  rows: readonly RowPath<Record>[],
  choice: RowChoice,
): readonly RowPath<Record>[] {
  if (choice === "all" || rows.length === 0) return rows;
  if (choice === "longest") {
    const longest = rows.reduce((left, right) =>
      sampledCount(right) > sampledCount(left) ? right : left,
    );
    return [longest];
  }
  const root = rows[0]!.path[0];
  return [rows.findLast(({ path }) => path[0] === root)!];
}

function sampledCount({ path, firstTrained }: RowPath<SampledTurn>): number {
  return path
    .slice(firstTrained)
    .reduce((sum, { record: { generation } }) => sum + generation.outputIds.length, 0);
}

function record(
  recorder: TrajectoryRecorder,
  path: readonly TurnNode<SampledTurn>[],
  firstTrained: number,
): void {
  recorder.openSegment(idsBefore(path.slice(0, firstTrained + 1)));
  /** The ids between two trained turns. */
  let between: EnvironmentDelta | undefined;
  path.slice(firstTrained).forEach(({ record: { generation, isTrainable, prompt } }, place) => {
    if (prompt.type === "delta" && place > 0) between = join(between, prompt.delta);
    if (isTrainable) {
      if (between !== undefined) recorder.appendDelta(between);
      recorder.appendTurn(generation);
      between = undefined;
    } else if (between !== undefined) {
      between = { ...between, ids: [...between.ids, ...generation.outputIds] };
    }
  });
}

function join(before: EnvironmentDelta | undefined, delta: EnvironmentDelta): EnvironmentDelta {
  if (before === undefined) return delta;
  const kept = delta.droppedStopId === undefined ? before.ids : before.ids.slice(0, -1);
  return { ...before, ids: [...kept, ...delta.ids] };
}
