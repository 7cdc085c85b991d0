import type { RolloutError } from "../errors.ts";
import { noSpending } from "../user/chat/add-spending.ts";
import { countEpisode } from "./count-episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import type { Episode } from "./episode.ts";

/** The setup of an episode, and its start in milliseconds since the epoch. */
interface Start {
  readonly setup: Pick<EpisodeSetup, "environment" | "now">;
  readonly startedAtMs: number;
}

/** Returns the record of an episode that failed, if nothing else is known about it. */
export function failedEpisode(
  failure: RolloutError,
  assignment: EpisodeAssignment,
  start: Start,
): Episode {
  const end = { outcome: "failed", stopReason: "failure", failure: failure.toFailure() } as const;
  return emptyEpisode(end, assignment, start);
}

/** Returns the record of an episode that was interrupted before its first turn. */
export function unplayedEpisode(
  assignment: EpisodeAssignment,
  setup: Pick<EpisodeSetup, "environment" | "now">,
): Episode {
  const end = { outcome: "aborted", stopReason: "interrupted" } as const;
  const startedAtMs = setup.now();
  return { ...emptyEpisode(end, assignment, { setup, startedAtMs }), durationMs: 0 };
}

function emptyEpisode(
  end: Pick<Episode, "outcome" | "stopReason" | "failure">,
  assignment: EpisodeAssignment,
  { setup, startedAtMs }: Start,
): Episode {
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, task, attempt = 1 } = assignment;
  return {
    format: 1,
    rolloutId,
    groupId,
    taskId: task.id,
    environment: setup.environment.name,
    split: task.split,
    taskIndex: task.index,
    sampleIndex,
    seed,
    attempt,
    ...(groupIndex !== undefined && { groupIndex }),
    ...(assignment.forkedFrom && { forkedFrom: assignment.forkedFrom }),
    ...end,
    counts: countEpisode([], [], 0, undefined),
    userUsage: noSpending,
    startedAtMs,
    durationMs: Math.max(setup.now() - startedAtMs, 0),
    messages: [],
    turns: [],
    segments: [],
  };
}
