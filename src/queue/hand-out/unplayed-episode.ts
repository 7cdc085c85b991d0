import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { noSpending } from "../../user/add-spending.ts";

/** An episode that was interrupted before anybody began to play it. */
export function unplayedEpisode(
  assignment: EpisodeAssignment,
  { environment, now }: Pick<EpisodeSetup, "environment" | "now">,
): Episode {
  const { task, rolloutId, groupId, groupIndex, sampleIndex, seed, attempt = 1 } = assignment;
  return {
    format: 2,
    ...{ rolloutId, groupId, taskId: task.id },
    environment: environment.name,
    split: task.split,
    taskIndex: task.index,
    ...(groupIndex === undefined ? {} : { groupIndex }),
    ...{ sampleIndex, seed, attempt },
    ...(assignment.forkedFrom && { forkedFrom: assignment.forkedFrom }),
    outcome: "aborted",
    stopReason: "interrupted",
    counts: {
      turnCount: 0,
      sampledTokenCount: 0,
      tokenCount: 0,
      toolCallCount: 0,
      formatErrorCount: 0,
      attemptCounts: {},
    },
    userUsage: noSpending,
    startedAtMs: now(),
    durationMs: 0,
    ...{ messages: [], turns: [], segments: [] },
  };
}
