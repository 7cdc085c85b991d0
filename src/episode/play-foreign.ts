import { InvariantError, RolloutError, describeError } from "../errors.ts";
import { noSpending } from "../user/add-spending.ts";
import { countEpisode } from "./count-episode.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import type { Episode } from "./episode.ts";

/**
 * Plays an attempt by `EpisodeSetup.play`, which is anybody's: whatever it throws, or returns that is no
 * episode, is a failure of the agent's, and takes nothing else with it.
 *
 * @throws the signal's reason where the caller aborts, and InvariantError on our own bugs.
 */
export async function playForeign(
  play: PlayAttempt,
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: Parameters<PlayAttempt>[2],
): Promise<Episode> {
  const startedAtMs = setup.now();
  try {
    const episode: unknown = await play(assignment, setup, options);
    if (isEpisodeOf(episode, assignment)) return episode;
    throw new TypeError("what it returned is no episode of this rollout, expected one");
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof InvariantError) throw error;
    const failure = attribute(error, assignment, setup);
    setup.onTrouble?.(failure);
    return failed(failure, assignment, { setup, startedAtMs });
  }
}

function isEpisodeOf(value: unknown, { rolloutId }: EpisodeAssignment): value is Episode {
  if (typeof value !== "object" || value === null) return false;
  const episode = value as Partial<Episode>;
  return (
    episode.rolloutId === rolloutId &&
    typeof episode.outcome === "string" &&
    Array.isArray(episode.turns) &&
    Array.isArray(episode.segments)
  );
}

function attribute(
  error: unknown,
  { rolloutId }: EpisodeAssignment,
  { agent }: EpisodeSetup,
): RolloutError {
  if (error instanceof RolloutError) return error;
  const message = `Cannot play ${rolloutId} as agent ${agent.strategy}: ${describeError(error)}`;
  return new RolloutError("agent/exception", message, { cause: error });
}

function failed(
  failure: RolloutError,
  assignment: EpisodeAssignment,
  { setup, startedAtMs }: { readonly setup: EpisodeSetup; readonly startedAtMs: number },
): Episode {
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, task, attempt = 1 } = assignment;
  return {
    ...{ format: 2, rolloutId, groupId, taskId: task.id, environment: setup.environment.name },
    ...{ split: task.split, taskIndex: task.index, sampleIndex, seed, attempt },
    ...(groupIndex === undefined ? {} : { groupIndex }),
    ...{ outcome: "failed", stopReason: "failure", failure: failure.toFailure() },
    counts: countEpisode([], [], 0, undefined),
    userUsage: noSpending,
    ...{ startedAtMs, durationMs: Math.max(setup.now() - startedAtMs, 0) },
    ...{ messages: [], turns: [], segments: [] },
  };
}
