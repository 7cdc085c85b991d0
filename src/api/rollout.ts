import type { Episode } from "../episode/episode.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import { openParts } from "./open-parts.ts";
import { playGroups, playPlan } from "./play-plan.ts";
import type { RolloutEpisode, RolloutGroup, RolloutOptions } from "./rollout-options.ts";

/**
 * Plays episodes and hands each out as it ends, with its training rows; with `group: true` all attempts
 * at a task together. Whoever breaks off the loop stops the rest. With `out` everything is written to a
 * run's folder too, and a later start plays what is missing there: a group that it ends has the attempts of
 * earlier starts as well, and one that had ended before is not handed out again.
 *
 * @throws UsageError for options that cannot be used, when the first episode is asked for.
 * @throws RolloutError where the engine does not answer, or one episode after the other fails.
 */
export function rollout(
  options: RolloutOptions & { readonly group: true },
): AsyncGenerator<RolloutGroup, void, undefined>;
export function rollout(
  options: RolloutOptions & { readonly group?: false },
): AsyncGenerator<RolloutEpisode, void, undefined>;
export async function* rollout({
  group = false,
  ...options
}: RolloutOptions & { readonly group?: boolean }): AsyncGenerator<
  RolloutEpisode | RolloutGroup,
  void,
  undefined
> {
  await using parts = await openParts(options);
  if (!group) {
    for await (const episode of playPlan(parts, options)) yield withSamples(episode);
    return;
  }
  for await (const { groupId, episodes } of playGroups(parts, options)) {
    yield { groupId, episodes: episodes.map((episode) => withSamples(episode)) };
  }
}

function withSamples(episode: Episode): RolloutEpisode {
  return { episode, samples: episodeSamples(episode) };
}
