import type { Episode } from "../../episode/episode.ts";
import { inputsBefore, type Inputs } from "../../episode/inputs/input.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import type { Fork } from "../schedule/task-source.ts";

/** The facts about a group's first attempt from which the others branch. */
export interface SharedPrefix {
  readonly episode: Pick<Episode, "rolloutId" | "reward" | "seed">;
  readonly turnCount: number;
  readonly inputs: Inputs;
}

/** Returns the id of a group of forks. Rows of a run, of its forks and of their forks have different ids. */
export function forkGroupId({ rolloutId, turnIndex }: ForkPlace, seed: number): string {
  return `${rolloutId}@${turnIndex}.${seed}`;
}

/** Returns the facts about a first attempt without its rows, which may be large. */
export function sharedPrefixOf(
  { rolloutId, reward, seed, counts }: Episode,
  inputs: Inputs,
): SharedPrefix {
  const scored = reward === undefined ? {} : { reward };
  return { episode: { rolloutId, seed, ...scored }, turnCount: counts.turnCount, inputs };
}

/**
 * Returns the fork at a turn, or at the last turn if the attempt has fewer turns; `undefined` if no turn can be shared.
 */
export function forkOf(
  { episode, inputs, turnCount }: SharedPrefix,
  wanted: number,
): Fork | undefined {
  for (let turnIndex = Math.min(wanted, turnCount - 1); turnIndex >= 0; turnIndex--) {
    const before = inputsBefore(inputs, turnIndex);
    if (before === undefined) continue;
    const { rolloutId, seed } = episode;
    return { place: { rolloutId, turnIndex }, inputs: before, seed };
  }
  return undefined;
}
