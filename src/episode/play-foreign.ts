import { InvariantError, RolloutError } from "../errors.ts";
import { endedBy } from "../internal/ended-by.ts";
import { plainCopy } from "../internal/plain-copy.ts";
import { whyNotJson } from "../internal/why-not-json.ts";
import { checkEnd } from "../trajectory/check-end.ts";
import type { ForkPlace } from "../trajectory/sample.ts";
import { rowFault } from "../trajectory/row-fault.ts";
import { segmentFault } from "../trajectory/segment-fault.ts";
import type { Segment } from "../trajectory/trajectory-recorder.ts";
import { isCount, isRow, quote, type RawRow } from "../trajectory/violation.ts";
import { spendingCounts } from "../user/add-spending.ts";
import { attribute } from "./boundary.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import type { Episode } from "./episode.ts";
import { sharedFault } from "./count-shared.ts";
import { left, leaveMs, playWithinTime } from "./play-within-time.ts";
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
 * its lists again.
 *
 * @throws TypeError where it is no episode of that attempt.
 */
export function takeEpisode(
  value: unknown,
  assignment: EpisodeAssignment,
  about: Parameters<typeof whyNoEpisode>[2],
): Episode {
  const why = whyNoEpisode(value, assignment, about);
  if (why === undefined) return copyOf(value as Episode);
  throw new TypeError(`what it returned is no episode of this rollout (${why}), expected one`);
}

function copyOf({ segments, ...story }: Episode): Episode {
  return { ...plainCopy(story), segments: segments.map((segment) => copyOfSegment(segment)) };
}

function copyOfSegment({
  tokenIds,
  lossMask,
  logprobs,
  policyVersions,
  ...about
}: Segment): Segment {
  return {
    ...plainCopy(about),
    tokenIds: [...tokenIds],
    lossMask: [...lossMask],
    logprobs: [...logprobs],
    policyVersions: [...policyVersions],
  };
}

const lists = ["turns", "messages"];
const sums = ["turnCount", "sampledTokenCount", "tokenCount", "toolCallCount", "formatErrorCount"];

/** Why a value is not what comes of an attempt; nothing where it is. */
function whyNoEpisode(
  value: unknown,
  assignment: EpisodeAssignment,
  {
    setup,
    options: { interrupt },
  }: {
    readonly setup: Pick<EpisodeSetup, "environment" | "renderer">;
    readonly options: Pick<Parameters<PlayAttempt>[2], "interrupt">;
  },
): string | undefined {
  if (!isRow(value)) return "it is no object";
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
    format: 2,
  };
  for (const [name, wanted] of Object.entries(place)) {
    if (value[name] !== wanted) return `${name} is ${quote(value[name])}`;
  }
  if (!isSamePlace(value["forkedFrom"], forkedFrom)) {
    return `forkedFrom is ${quote(value["forkedFrom"])}`;
  }
  for (const name of lists) {
    const list = value[name];
    if (!isListOfRows(list)) return `${name} is no list of objects`;
  }
  const { environment } = value;
  if (environment !== setup.environment.name && environment !== task.environment) {
    return `environment is ${quote(environment)}`;
  }
  for (const name of ["startedAtMs", "durationMs"]) {
    if (!Number.isFinite(value[name])) return `${name} is ${quote(value[name])}`;
  }
  const { attempt = assignment.attempt ?? 1, tree = [], turns } = value;
  if (attempt !== (assignment.attempt ?? 1)) return `attempt is ${quote(attempt)}`;
  if (!isListOfRows(tree)) return "tree is no list of objects";
  const unjudged = (turns as RawRow[]).findIndex(({ format }) => !isFormat(format));
  if (unjudged >= 0) return `turns[${unjudged}].format is no form of a turn`;
  const [wrong] = checkEnd(value);
  if (wrong !== undefined) return wrong.detail;
  // It would be left to a next start that nobody has a reason to make.
  if (value["outcome"] === "aborted" && interrupt?.aborted !== true) {
    return "outcome is aborted, and nobody interrupted it";
  }
  const { counts, userUsage, segments, ...story } = value;
  if (!isRow(counts) || !sums.every((name) => isCount(counts[name]))) return "counts lacks a sum";
  if (!isRow(userUsage)) return "userUsage is no object";
  const unspent = spendingCounts.find((name) => !isCount(userUsage[name]));
  if (unspent !== undefined) return `userUsage.${unspent} is ${quote(userUsage[unspent])}`;
  const { costUsd = 0 } = userUsage;
  if (!Number.isFinite(costUsd)) return `userUsage.costUsd is ${quote(costUsd)}`;
  const unshared = sharedFault(value);
  if (unshared !== undefined) return unshared;
  const fault = segmentFault(segments);
  if (fault !== undefined) return fault;
  const unwritten = whyNotJson({ ...story, counts, userUsage });
  if (unwritten !== undefined) return `it cannot be written as JSON: ${unwritten}`;
  // Whether an engine that chose greedily names probabilities is none of the player's.
  const { vocabularySize } = setup.renderer.codec;
  return rowFault(value as unknown as Episode, { vocabularySize, mayBeCertain: true });
}

/** A copy has no places that nothing was ever put in, which `every()` passes over. */
function isListOfRows(list: unknown): boolean {
  return Array.isArray(list) && [...(list as unknown[])].every(isRow);
}

/** It may have come from another process. */
function isSamePlace(value: unknown, wanted: ForkPlace | undefined): boolean {
  if (wanted === undefined || !isRow(value)) return value === wanted;
  return value["rolloutId"] === wanted.rolloutId && value["turnIndex"] === wanted.turnIndex;
}

/** Whether a value can be what a record says of its turn's form. */
function isFormat(format: unknown): boolean {
  if (format === undefined) return true;
  if (!isRow(format) || typeof format["formatOk"] !== "boolean") return false;
  const { firstError } = format;
  if (firstError === undefined) return true;
  const span = isRow(firstError) ? firstError["tokenSpan"] : undefined;
  return Array.isArray(span) && span.length === 2 && span.every(isCount);
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
  const attributed = attribute(error, { party: "agent", what });
  if (attributed instanceof InvariantError) throw attributed;
  return attributed;
}
