import type { EpisodeStory } from "../../run/folder/episode-row.ts";

/** Returns the values of a reward's components by name, without their weights. `undefined` if there are none. */
export function componentValues({
  rewardComponents,
}: Pick<EpisodeStory, "rewardComponents">): Readonly<Record<string, number>> | undefined {
  if (rewardComponents === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(rewardComponents).map(([name, { value }]) => [name, value]),
  );
}
