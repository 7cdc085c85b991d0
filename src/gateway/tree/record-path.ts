import type { Generation } from "../../engine/engine.ts";
import { assertInvariant } from "../../errors.ts";
import type { EnvironmentDelta } from "../../renderer/renderer.ts";
import { TrajectoryRecorder } from "../../trajectory/trajectory-recorder.ts";
import type { TurnNode } from "./turn-node.ts";

/** The prompt and the output of a turn on a path. */
export interface PathTurn {
  readonly generation: Generation;
  /** The ids before the output: the complete prompt of a root, otherwise the ids since the previous turn. */
  readonly prompt:
    | { readonly type: "root"; readonly ids: readonly number[] }
    | { readonly type: "delta"; readonly delta: EnvironmentDelta };
  /** False if the request named a model that is not trained. */
  readonly isTrainable: boolean;
}

/** Returns the turns from the root to a turn. */
export function pathTo<Record>(leaf: TurnNode<Record>): readonly TurnNode<Record>[] {
  const path: TurnNode<Record>[] = [];
  for (let node: TurnNode<Record> | undefined = leaf; node !== undefined; node = node.parent) {
    path.push(node);
  }
  return path.toReversed();
}

/**
 * Records the turns of a path in the way in which an episode records its turns. The recorder's next prompt continues
 * the last turn of the path.
 *
 * @param options.recorder - The recorder, which begins a segment for the path. Default: a new one.
 * @param options.trained - The turns that the segment's row trains. Default: none.
 */
export function recordPath<Record extends PathTurn>(
  path: readonly TurnNode<Record>[],
  {
    recorder = new TrajectoryRecorder(),
    trained,
  }: {
    readonly recorder?: TrajectoryRecorder;
    readonly trained?: ReadonlySet<TurnNode<Record>>;
  } = {},
): TrajectoryRecorder {
  path.forEach((node, place) => {
    const { generation, prompt } = node.record;
    assertInvariant(
      (prompt.type === "root") === (place === 0),
      "only the first turn of a path is a root",
    );
    if (prompt.type === "root") recorder.openSegment(prompt.ids);
    else recorder.appendDelta(prompt.delta);
    recorder.appendTurn(generation, { isTrained: trained?.has(node) === true });
  });
  return recorder;
}
