import type { Generation } from "../../engine/engine.ts";
import { assertInvariant } from "../../errors.ts";
import type { EnvironmentDelta } from "../../renderer/renderer.ts";
import type { TurnNode } from "./turn-node.ts";

/** The prompt and the output of a sampled turn. */
export interface SampledTurn {
  readonly generation: Generation;
  /**
   * The ids before the output: the complete prompt of a root, otherwise the ids since the turn
   * before.
   */
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
 * Returns the complete prompt of a path's last turn. It is concatenated on each call, because a
 * turn stores only its own part.
 */
export function idsBefore(path: readonly TurnNode<SampledTurn>[]): number[] {
  return join(listsBefore(path));
}

/** Lists of ids to concatenate. */
type IdLists = (readonly number[])[];

function listsBefore(path: readonly TurnNode<SampledTurn>[]): IdLists {
  const lists: IdLists = [];
  path.forEach(({ record: { generation, prompt } }, place) => {
    appendPrompt(lists, prompt, place === 0);
    if (place < path.length - 1) lists.push(generation.outputIds);
  });
  return lists;
}

/** `concat()` copies complete lists, which is faster than pushing thousands of ids. */
function join(lists: IdLists): number[] {
  return ([] as number[]).concat(...lists);
}

/** Returns the prompt of a turn that continues a path: the path's ids and the delta. */
export function idsAfter(
  path: readonly TurnNode<SampledTurn>[],
  delta: EnvironmentDelta,
): number[] {
  const lists = listsBefore(path);
  lists.push(path.at(-1)?.record.generation.outputIds ?? []);
  appendPrompt(lists, { type: "delta", delta }, false);
  return join(lists);
}

/**
 * Extends a turn's prompt in place to the prompt of the turn that continues it.
 *
 * @param ids - The turn's prompt. The caller must not use it any more.
 */
export function extendWithTurn(
  ids: number[],
  { generation: { outputIds } }: SampledTurn,
  { droppedStopId, ids: added }: EnvironmentDelta,
): void {
  const isDropped = droppedStopId !== undefined;
  assertInvariant(
    !isDropped || outputIds.at(-1) === droppedStopId,
    "only the last sampled id can be dropped",
  );
  for (const id of isDropped ? outputIds.slice(0, -1) : outputIds) ids.push(id);
  for (const id of added) ids.push(id);
}

function appendPrompt(lists: IdLists, prompt: SampledTurn["prompt"], isFirst: boolean): void {
  assertInvariant((prompt.type === "root") === isFirst, "only the first turn of a path is a root");
  if (prompt.type === "root") {
    lists.push(prompt.ids);
    return;
  }
  const { droppedStopId, ids: added } = prompt.delta;
  if (droppedStopId !== undefined) {
    const last = lists.pop() ?? [];
    assertInvariant(last.at(-1) === droppedStopId, "only the last sampled id can be dropped");
    lists.push(last.slice(0, -1));
  }
  lists.push(added);
}
