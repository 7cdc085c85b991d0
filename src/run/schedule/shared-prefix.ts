import type { Episode } from "../../episode/episode.ts";
import { inputsBefore, type Inputs } from "../../episode/inputs/input.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import type { Fork } from "./task-source.ts";

/** The first attempt of a group, as far as the others need it to part from it. */
export interface SharedPrefix {
  readonly episode: Pick<Episode, "rolloutId" | "reward" | "seed">;
  readonly turnCount: number;
  readonly inputs: Inputs;
}

/**
 * Names a group of forks: by what they part from, and by their seed, so that rows of the run that was
 * forked, of its forks and of theirs can stand in one file.
 */
export function forkGroupId({ rolloutId, turnIndex }: ForkPlace, seed: number): string {
  return `${rolloutId}@${turnIndex}.${seed}`;
}

/** What is kept of a first attempt: its rows may be large. */
export function sharedPrefixOf(
  { rolloutId, reward, seed, turns }: Episode,
  inputs: Inputs,
): SharedPrefix {
  const scored = reward === undefined ? {} : { reward };
  return { episode: { rolloutId, seed, ...scored }, turnCount: turns.length, inputs };
}

/** How an attempt parts from it: with the turn that is wanted, or with the last one where there are fewer. */
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
