import type { Episode } from "../../episode/episode.ts";
import type { Redactor } from "../../secrets/redactor.ts";

/**
 * An episode as others see it: whatever its texts come from, they pass here. Its names come from the assignment
 * and stay as they are, for its rows, its events and later starts go by them; its ids stay, too.
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
