import type { Generation } from "../../engine/engine.ts";
import { assertInvariant } from "../../errors.ts";
import type { EnvironmentDelta } from "../../renderer/renderer.ts";
import type { TurnNode } from "./turn-node.ts";

/** What a turn was sampled with, and what came of it. */
export interface SampledTurn {
  readonly generation: Generation;
  /** The ids in front of the turn: all of them for a root, else those behind the turn before it. */
  readonly prompt:
    | { readonly type: "root"; readonly ids: readonly number[] }
    | { readonly type: "delta"; readonly delta: EnvironmentDelta };
  /** Whether the turn may be trained: not where another model's name was asked for. */
  readonly isTrainable: boolean;
}

/** The turns from the root to a turn. */
export function pathTo<Record>(leaf: TurnNode<Record>): readonly TurnNode<Record>[] {
  const path: TurnNode<Record>[] = [];
  for (let node: TurnNode<Record> | undefined = leaf; node !== undefined; node = node.parent) {
    path.push(node);
  }
  return path.toReversed();
}

/**
 * The ids that the last turn of a path was sampled behind. They are put together anew each time: a
 * turn keeps its own alone.
 */
export function idsBefore(path: readonly TurnNode<SampledTurn>[]): number[] {
  return join(stretchesBefore(path));
}

/** Ids of one kind after the other. */
type Stretches = (readonly number[])[];

function stretchesBefore(path: readonly TurnNode<SampledTurn>[]): Stretches {
  const stretches: Stretches = [];
  path.forEach(({ record: { generation, prompt } }, place) => {
    appendPrompt(stretches, prompt, place === 0);
    if (place < path.length - 1) stretches.push(generation.outputIds);
  });
  return stretches;
}

/** Lists are joined as wholes: a prompt has many thousands of ids, and each turn has a prompt. */
function join(stretches: Stretches): number[] {
  return ([] as number[]).concat(...stretches);
}

/** The ids of a path, and what is put behind it: the prompt of a turn that continues it. */
export function idsBehind(
  path: readonly TurnNode<SampledTurn>[],
  delta: EnvironmentDelta,
): number[] {
  const stretches = stretchesBefore(path);
  stretches.push(path.at(-1)?.record.generation.outputIds ?? []);
  appendPrompt(stretches, { type: "delta", delta }, false);
  return join(stretches);
}

/**
 * Makes the prompt of a turn the prompt of the one that continues it, in place: it is not copied.
 *
 * @param ids - What the turn was sampled behind. Nobody else may read it any more.
 */
export function extendBehindTurn(
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

function appendPrompt(stretches: Stretches, prompt: SampledTurn["prompt"], isFirst: boolean): void {
  assertInvariant(
    (prompt.type === "root") === isFirst,
    "a path begins at its root, and only there",
  );
  if (prompt.type === "root") {
    stretches.push(prompt.ids);
    return;
  }
  const { droppedStopId, ids: added } = prompt.delta;
  if (droppedStopId !== undefined) {
    const last = stretches.pop() ?? [];
    assertInvariant(last.at(-1) === droppedStopId, "only the last sampled id can be dropped");
    stretches.push(last.slice(0, -1));
  }
  stretches.push(added);
}
