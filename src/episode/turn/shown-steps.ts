import type { Episode, TurnRecord, TurnStep } from "../episode.ts";

/**
 * Returns the steps of a turn that people read. Leaves out an empty text of the user that ends the episode, because the
 * reason for the end is shown too.
 */
export function shownSteps(
  { outcome, turns }: Pick<Episode, "outcome" | "turns">,
  { turnIndex, steps }: Pick<TurnRecord, "turnIndex" | "steps">,
): readonly TurnStep[] {
  const last = steps.at(-1);
  const isEnd = outcome === "completed" && turnIndex === turns.at(-1)?.turnIndex;
  const isSilent = last?.source === "user" && last.observation === "";
  return isEnd && isSilent ? steps.slice(0, -1) : steps;
}
