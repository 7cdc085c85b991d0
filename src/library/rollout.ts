import { episodeSamples } from "../run/episode-samples.ts";
import { openParts } from "./open-parts.ts";
import { playPlan } from "./play-plan.ts";
import type { RolloutEpisode, RolloutGroup, RolloutOptions } from "./rollout-options.ts";

/**
 * Plays episodes and hands each out as it ends, with its training rows; with `group: true` all attempts
 * at a task together. Whoever breaks off the loop stops the rest. With `out` everything is written to a
 * run's folder too, and a later start plays what is missing there.
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
  const { sampleCount } = parts.plan.scope;
  const groups = new Map<string, RolloutEpisode[]>();
  for await (const episode of playPlan(parts, options)) {
    const played = { episode, samples: episodeSamples(episode) };
    if (!group) {
      yield played;
      continue;
    }
    const { groupId } = episode;
    const episodes = groups.get(groupId) ?? [];
    groups.set(groupId, episodes);
    if (episodes.push(played) < sampleCount) continue;
    groups.delete(groupId);
    episodes.sort((a, b) => a.episode.sampleIndex - b.episode.sampleIndex);
    yield { groupId, episodes };
  }
}
