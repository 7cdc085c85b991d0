import type { EpisodeAssignment } from "../episode/episode-setup.ts";
import type { Episode } from "../episode/episode.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import type { PlayedGroup } from "./batch-taker.ts";

/** Returns a group in the form that docs/service.md describes. */
export function describeGroup(
  { task, attempts }: PlayedGroup,
  { batch, key }: { readonly batch: string; readonly key: string },
): object {
  const { id, split, index, environment } = task;
  const described = attempts.map((attempt) =>
    attempt.type === "played"
      ? describeAttempt(attempt.episode)
      : describeGivenUp(attempt.assignment, environment),
  );
  return { batch, key, groupId: id, taskId: id, split, taskIndex: index, attempts: described };
}

/** Describes a finished attempt. */
function describeAttempt(episode: Episode): object {
  const { rolloutId, sampleIndex, seed, outcome, stopReason, reward, failure } = episode;
  const { environment, counts, durationMs, rewardDetails, userUsage, turns } = episode;
  const { rewardComponents, turnRewards, success } = episode;
  const sum = (of: (turn: Episode["turns"][number]) => number): number =>
    turns.reduce((total, turn) => total + of(turn), 0);
  return {
    rolloutId,
    sampleIndex,
    seed,
    outcome,
    stopReason,
    ...(reward !== undefined && { reward }),
    ...(failure !== undefined && { failure }),
    rows: episodeSamples(episode),
    environment,
    turnCount: counts.turnCount,
    engineMs: sum(({ engineMs }) => engineMs),
    environmentMs: sum(({ environmentMs }) => environmentMs),
    promptTokenCount: sum(({ promptTokenCount }) => promptTokenCount),
    cachedTokenCount: sum(({ cachedTokenCount = 0 }) => cachedTokenCount),
    durationMs,
    ...(rewardDetails !== undefined && { rewardDetails }),
    ...(rewardComponents !== undefined && { rewardComponents }),
    ...(turnRewards !== undefined && { turnRewards }),
    ...(success !== undefined && { success }),
    userUsage,
  };
}

/** Describes an attempt that was cancelled before its end. */
function describeGivenUp(
  { rolloutId, sampleIndex, seed }: Pick<EpisodeAssignment, "rolloutId" | "sampleIndex" | "seed">,
  environment: string,
): object {
  const end = { outcome: "aborted", stopReason: "interrupted", rows: [] };
  return { rolloutId, sampleIndex, seed, ...end, environment };
}
