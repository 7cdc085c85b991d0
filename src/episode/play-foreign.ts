import { InvariantError, RolloutError, parties } from "../errors.ts";
import { endedBy } from "../async/ended-by.ts";
import { wellFormedCopy } from "../values/plain-copy.ts";
import { whyNotJson } from "../json/why-not-json.ts";
import { checkEnd } from "../trajectory/check-end.ts";
import type { ForkPlace } from "../trajectory/sample.ts";
import { segmentFault } from "../trajectory/segment-fault.ts";
import type { Segment } from "../trajectory/trajectory-recorder.ts";
import { isRow, quote, type RawRow } from "../trajectory/violation.ts";
import { attribute } from "./boundary.ts";
import { checkStory } from "./check/check-story.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import type { Episode, EpisodeStory } from "./episode.ts";
import { left, leaveMs, playWithinTime } from "./play-within-time.ts";
import { rowsFault } from "./check/rows-fault.ts";
import { failedEpisode, unplayedEpisode } from "./unplayed-episode.ts";

/**
 * Plays an attempt by `EpisodeSetup.play`, which is anybody's: whatever it throws, or returns that is no
 * episode, and that it returns nothing in time, is a failure of the agent's, and takes nothing else with it.
 * An attempt that was interrupted and is not handed over, in time or at all, is `aborted` with nothing.
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
    const episode = await playWithinTime(play, assignment, setup, options);
    // What it has nobody knows: the next start begins anew.
    if (episode === left) {
      setup.onTrouble?.(noAnswer(assignment, setup));
      return unplayedEpisode(assignment, setup);
    }
    return takeEpisode(episode, assignment, { setup, options });
  } catch (error) {
    const { interrupt, signal } = options;
    signal.throwIfAborted();
    const failure = toFailure(error, assignment, setup);
    return withoutEpisode(failure, assignment, { setup, startedAtMs, interrupt, thrown: error });
  }
}

/**
 * What comes of a play that handed over no episode: a failure, unless it was interrupted. Whatever it does then
 * is how it leaves; it is told as a trouble where it is not what the interruption itself makes of a wait.
 *
 * @param failure - What was thrown, or was wrong with what it returned, under the name of its party.
 */
export function withoutEpisode(
  failure: RolloutError,
  assignment: EpisodeAssignment,
  {
    setup,
    startedAtMs,
    interrupt,
    thrown,
  }: {
    readonly setup: EpisodeSetup;
    readonly startedAtMs: number;
    readonly interrupt: AbortSignal | undefined;
    readonly thrown: unknown;
  },
): Episode {
  const isStopped = interrupt?.aborted === true;
  if (!isStopped || !endedBy(interrupt, thrown)) setup.onTrouble?.(failure);
  return isStopped
    ? unplayedEpisode(assignment, setup)
    : failedEpisode(failure, assignment, { setup, startedAtMs });
}

/**
 * A copy of what came of an attempt that others played: it is written in a while, and whoever returned it may use
 * its lists again. It is held to all that `turnwright verify` asks of an episode and its rows.
 *
 * @throws TypeError where it is no episode of that attempt.
 */
export function takeEpisode(
  value: unknown,
  assignment: EpisodeAssignment,
  { setup, options }: TakeOptions,
): Episode {
  if (!isRow(value)) throw noEpisode("it is no object");
  const { segments, ...rest } = value;
  const why = whyNotJson(rest);
  if (why !== undefined) throw noEpisode(`it cannot be written as JSON: ${why}`);
  const story: unknown = wellFormedCopy(rest);
  if (!isRow(story)) throw noEpisode("it is no object");
  const fault =
    whyElsewhere(story, assignment, { setup, options }) ??
    // A reward of NaN is null in the copy.
    checkEnd(rest)[0]?.detail ??
    checkStory(story).found[0]?.detail ??
    segmentFault(segments);
  if (fault !== undefined) throw noEpisode(fault);
  const episode = {
    ...(story as unknown as EpisodeStory),
    segments: (segments as readonly Segment[]).map((segment) => copyOfSegment(segment)),
  };
  // Whether an engine that chose greedily names probabilities is none of the player's.
  const { vocabularySize } = setup.renderer.codec;
  const broken = rowsFault(episode, { vocabularySize, mayBeCertain: true });
  if (broken !== undefined) throw noEpisode(broken);
  return episode;
}

/** Under what an attempt was played. */
interface TakeOptions {
  readonly setup: Pick<EpisodeSetup, "environment" | "renderer">;
  readonly options: Pick<Parameters<PlayAttempt>[2], "interrupt">;
}

function noEpisode(why: string): TypeError {
  return new TypeError(`what it returned is no episode of this rollout (${why}), expected one`);
}

function copyOfSegment({
  tokenIds,
  lossMask,
  logprobs,
  policyVersions,
  ...about
}: Segment): Segment {
  return {
    ...wellFormedCopy(about),
    tokenIds: [...tokenIds],
    lossMask: [...lossMask],
    logprobs: [...logprobs],
    policyVersions: [...policyVersions],
  };
}

/** Why an episode is not what can come of this attempt; nothing where it is. */
function whyElsewhere(
  story: RawRow,
  assignment: EpisodeAssignment,
  { setup, options: { interrupt } }: TakeOptions,
): string | undefined {
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, task, forkedFrom } = assignment;
  const { id: taskId, index: taskIndex, split } = task;
  const place = {
    rolloutId,
    groupId,
    groupIndex,
    sampleIndex,
    taskId,
    taskIndex,
    split,
    seed,
    attempt: assignment.attempt ?? 1,
    format: 1,
  };
  for (const [name, wanted] of Object.entries(place)) {
    if (story[name] !== wanted) return `${name} is ${quote(story[name])}`;
  }
  if (!isSamePlace(story["forkedFrom"], forkedFrom)) {
    return `forkedFrom is ${quote(story["forkedFrom"])}`;
  }
  const { environment, outcome } = story;
  if (environment !== setup.environment.name && environment !== task.environment) {
    return `environment is ${quote(environment)}`;
  }
  // It would be left to a next start that nobody has a reason to make.
  return outcome === "aborted" && interrupt?.aborted !== true
    ? "outcome is aborted, and nobody interrupted it"
    : undefined;
}

/** It may have come from another process. */
function isSamePlace(value: unknown, wanted: ForkPlace | undefined): boolean {
  if (wanted === undefined || !isRow(value)) return value === wanted;
  return value["rolloutId"] === wanted.rolloutId && value["turnIndex"] === wanted.turnIndex;
}

function noAnswer({ rolloutId }: EpisodeAssignment, { agent, limits }: EpisodeSetup): RolloutError {
  return new RolloutError(
    "agent/timeout",
    `Cannot leave ${rolloutId} with what agent ${agent.strategy} has: no answer within ${leaveMs(limits)} ms ` +
      "of the interruption, expected its episode, aborted (a play() that does not heed options.interrupt?)",
    { retryable: true },
  );
}

/** @throws InvariantError on our own bugs. */
function toFailure(
  error: unknown,
  { rolloutId }: EpisodeAssignment,
  { agent }: EpisodeSetup,
): RolloutError {
  const what = `play ${rolloutId} as agent ${agent.strategy}`;
  // It asks the engine, the world and the user itself.
  const attributed = attribute(error, { party: "agent", what, passes: parties });
  if (attributed instanceof InvariantError) throw attributed;
  return attributed;
}
