import { isObject } from "../values/is-object.ts";
import { InvariantError, RolloutError, parties } from "../errors.ts";
import { endedBy } from "../async/ended-by.ts";
import { wellFormedCopy } from "../values/plain-copy.ts";
import { whyNotJson } from "../json/why-not-json.ts";
import { checkEnd } from "../trajectory/check-end.ts";
import type { ForkPlace } from "../trajectory/sample.ts";
import { segmentFault } from "../trajectory/segment-fault.ts";
import type { Segment } from "../trajectory/segment.ts";
import { quote, type RawRow } from "../trajectory/violation.ts";
import { attribute } from "./boundary.ts";
import { checkStory } from "./check/check-story.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import type { Episode, EpisodeStory } from "./episode.ts";
import { left, leaveMs, playWithinTime } from "./play-within-time.ts";
import { rendererOf } from "./renderer-of.ts";
import { rowsFault } from "./check/rows-fault.ts";
import { failedEpisode, unplayedEpisode } from "./unplayed-episode.ts";

/**
 * Plays an attempt with the custom player `EpisodeSetup.play`. Its errors, invalid episodes and timeouts are failures
 * of the agent. An interrupted attempt without an episode is `aborted` and empty.
 *
 * @throws the signal's reason if the caller aborts.
 * @throws InvariantError for bugs of this package.
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
    // The state of the attempt is unknown, so the next start plays it from the beginning.
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
 * Returns the record of an attempt without an episode: failed, or aborted if it was interrupted. An interrupted
 * attempt's error is reported as a trouble, unless it is the interruption itself.
 *
 * @param failure - The attributed error: of the player, or of its invalid episode.
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
 * Checks a custom player's episode as `turnwright verify` does, and returns a copy. The copy is needed because the
 * player may reuse its lists.
 *
 * @throws TypeError if it is not an episode of the attempt.
 */
export function takeEpisode(
  value: unknown,
  assignment: EpisodeAssignment,
  { setup, options }: TakeOptions,
): Episode {
  if (!isObject(value)) throw noEpisode("it is not an object");
  const { segments, ...rest } = value;
  const why = whyNotJson(rest);
  if (why !== undefined) throw noEpisode(`it cannot be written as JSON: ${why}`);
  const story: unknown = wellFormedCopy(rest);
  if (!isObject(story)) throw noEpisode("it is not an object");
  const fault =
    findOtherAttempt(story, assignment, { setup, options }) ??
    // Not `story`, because NaN is null in the copy.
    storyFault(rest, story) ??
    segmentFault(segments);
  if (fault !== undefined) throw noEpisode(fault);
  const episode = {
    ...(story as unknown as EpisodeStory),
    segments: (segments as readonly Segment[]).map((segment) => copyOfSegment(segment)),
  };
  const broken = rowsFaultOf(episode, setup);
  if (broken !== undefined) throw noEpisode(broken);
  return episode;
}

/**
 * Checks an episode as `turnwright verify` does, before it is written by another process.
 * @returns a description of the first fault, or `undefined`.
 */
export function episodeFault(
  episode: Episode,
  setup: Pick<EpisodeSetup, "renderer" | "columns">,
): string | undefined {
  const { segments, ...story } = episode;
  return (
    storyFault({ ...story }, { ...story }) ?? segmentFault(segments) ?? rowsFaultOf(episode, setup)
  );
}

/**
 * Describes the first fault of an episode's record; `undefined` if there is none.
 *
 * @param written - The story as it is written to JSON.
 */
function storyFault(story: RawRow, written: RawRow): string | undefined {
  return checkEnd(story)[0]?.detail ?? checkStory(written).found[0]?.detail;
}

function rowsFaultOf(
  episode: Episode,
  { columns = {}, ...setup }: Pick<EpisodeSetup, "renderer" | "columns">,
): string | undefined {
  // `mayBeCertain`, because the player does not know whether the engine samples greedily.
  const { vocabularySize } = rendererOf(setup).codec;
  return rowsFault(episode, { vocabularySize, columns, mayBeCertain: true });
}

/** The setup and the options with which an attempt's episode is taken over. */
interface TakeOptions {
  readonly setup: Pick<EpisodeSetup, "environment" | "renderer" | "columns">;
  readonly options: Pick<Parameters<PlayAttempt>[2], "interrupt">;
}

function noEpisode(why: string): TypeError {
  return new TypeError(
    `it returned a value that is not an episode of this rollout (${why}), expected one`,
  );
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

/** Returns the reason why an episode cannot belong to this attempt, or `undefined`. */
function findOtherAttempt(
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
  // An aborted episode waits for the next start, which is only made after an interruption.
  return outcome === "aborted" && interrupt?.aborted !== true
    ? "outcome is aborted, but it was not interrupted"
    : undefined;
}

/** Compares members, because the value may come from another process. */
function isSamePlace(value: unknown, wanted: ForkPlace | undefined): boolean {
  if (wanted === undefined || !isObject(value)) return value === wanted;
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

/**
 * Converts an error of the player to the failure of the episode.
 *
 * @throws InvariantError for bugs of this package.
 */
function toFailure(
  error: unknown,
  { rolloutId }: EpisodeAssignment,
  { agent }: EpisodeSetup,
): RolloutError {
  const what = `play ${rolloutId} as agent ${agent.strategy}`;
  // Passes all failures: the player calls the engine, the world and the user itself.
  const attributed = attribute(error, { party: "agent", what, passes: parties });
  if (attributed instanceof InvariantError) throw attributed;
  return attributed;
}
