import type { EpisodeStory } from "../../run/folder/episode-row.ts";

/** Returns the value of each component of a reward by its name, or `undefined` if there are no components. */
export function componentValues({
  rewardComponents,
}: Pick<EpisodeStory, "rewardComponents">): Readonly<Record<string, number>> | undefined {
  if (rewardComponents === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(rewardComponents).map(([name, { value }]) => [name, value]),
  );
}
