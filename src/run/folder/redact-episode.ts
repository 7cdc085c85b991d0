import type { Episode } from "../../episode/episode.ts";
import type { Redactor } from "../../secrets/redactor.ts";

/**
 * Removes secrets from all texts of an episode. The names in its assignment stay, because rows, events and later starts
 * refer to them.
 */
export async function redactEpisode(
  episode: Episode,
  redactor: Pick<Redactor, "cleanInTurns"> | undefined,
): Promise<Episode> {
  if (redactor === undefined) return episode;
  const { segments, ...story } = episode;
  const { rolloutId, groupId, taskId, forkedFrom, environment, split } = story;
  return {
    ...(await redactor.cleanInTurns(story)),
    rolloutId,
    groupId,
    taskId,
    environment,
    split,
    ...(forkedFrom && { forkedFrom }),
    segments,
  };
}
