import type { Episode } from "../episode/episode.ts";
import { formatMetadata } from "../episode/format-metadata.ts";
import { toSamples, type Sample } from "../trajectory/sample.ts";
import type { EpisodeStory } from "./episode-row.ts";

/** The training rows of an episode, with what a trainer's filters and rewards may want to know. */
export function episodeSamples(episode: Episode): readonly Sample[] {
  return toSamples(episode.segments, episode, episode, {}).map((sample) => ({
    ...sample,
    metadata: sampleMetadata(episode, sample),
  }));
}

/** What a training row of the episode says besides its tokens. */
export function sampleMetadata(
  episode: EpisodeStory,
  row: Pick<Sample, "turns">,
): Readonly<Record<string, unknown>> {
  const { counts, sampleIndex, environment, split, taskIndex } = episode;
  const { sampledTokenCount: _sampled, tokenCount: _all, toolCallCount: _calls, ...kept } = counts;
  const about = { environment, split, taskIndex, sampleIndex, ...kept };
  return { ...about, ...formatMetadata(row, episode.turns) };
}
