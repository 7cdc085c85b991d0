import type { RolloutError } from "../errors.ts";
import { noSpending } from "../user/add-spending.ts";
import { countEpisode } from "./count-episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import type { Episode } from "./episode.ts";

/** An episode that failed, and of which nothing else is known. */
export function failedEpisode(
  failure: RolloutError,
  assignment: EpisodeAssignment,
  { setup, startedAtMs }: { readonly setup: EpisodeSetup; readonly startedAtMs: number },
): Episode {
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, task, attempt = 1 } = assignment;
  return {
    format: 2,
    rolloutId,
    groupId,
    taskId: task.id,
    environment: setup.environment.name,
    split: task.split,
    taskIndex: task.index,
    sampleIndex,
    seed,
    attempt,
    ...(groupIndex === undefined ? {} : { groupIndex }),
    ...(assignment.forkedFrom && { forkedFrom: assignment.forkedFrom }),
    outcome: "failed",
    stopReason: "failure",
    failure: failure.toFailure(),
    counts: countEpisode([], [], 0, undefined),
    userUsage: noSpending,
    startedAtMs,
    durationMs: Math.max(setup.now() - startedAtMs, 0),
    messages: [],
    turns: [],
    segments: [],
  };
}
