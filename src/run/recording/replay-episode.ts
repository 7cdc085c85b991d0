import type { Environment } from "../../environment/environment.ts";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { RecordingEnd } from "../../episode/inputs/playback-stop.ts";
import { UsageError } from "../../errors.ts";
import { PlaybackStop } from "../../outside.ts";
import { playEpisode } from "../../episode/play-episode.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { hashRow } from "../../trajectory/hash-row.ts";
import type { Sample } from "../../trajectory/sample.ts";
import type { EpisodeRow } from "../folder/episode-row.ts";
import { episodeSamples } from "../folder/episode-samples.ts";
import { drawTask } from "../schedule/plan-run.ts";
import type { RecordedAttempt } from "./read-recording.ts";
import { redactEpisode } from "../folder/redact-episode.ts";
import {
  describeCopy,
  describeLostTask,
  describeOtherAttempt,
  isOfOtherAttempt,
  isOfOtherRun,
} from "./recording-line.ts";
import { shortJson } from "../../secrets/shorten.ts";

/** The result of playing a recorded episode again. */
export type ReplayVerdict =
  /** Every byte is the same. */
  | { readonly type: "identical"; readonly episode: Episode }
  /** The episode ended, but differs: the first place that differs. */
  | { readonly type: "differs"; readonly episode: Episode; readonly place: string }
  /** The replay stopped: the reason. */
  | { readonly type: "diverged"; readonly reason: string }
  /** The recording ends before the episode does, because the run did not finish the attempt. */
  | { readonly type: "unfinished"; readonly reason: string }
  /** The recording is incomplete, or of an earlier play than the finished one, so there is nothing to compare. */
  | { readonly type: "unrecorded"; readonly reason: string };

/** A recorded episode, with its row. */
export interface StoredEpisode {
  readonly recorded: RecordedAttempt;
  /** The episode's row. Absent if the attempt did not finish. */
  readonly row?: EpisodeRow;
  readonly samples: readonly Sample[];
  /** The `runId` of the folder that has the recording and the row. */
  readonly runId?: string;
}

/** The environment and the options of a replay. It needs no engine, no model and no key. */
export interface ReplayOptions {
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  /** Removes the same secrets as the run did. */
  readonly redactor?: Redactor;
  /** True to have the environment score the episode again. Default false. */
  readonly scoreAnew?: boolean;
}

/**
 * Returns the assignment of a recording.
 *
 * @throws UsageError if its task is lost.
 */
export function recordedAssignment(
  environment: Environment,
  { begin }: RecordedAttempt,
): EpisodeAssignment {
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, attempt, start, forkedFrom } = begin;
  const lost = describeLostTask(begin);
  if (lost !== undefined) throw new UsageError(`Cannot play ${rolloutId} again: ${lost}`);
  const task = begin.ownTask?.task ?? drawTask(environment, begin.split, begin.taskIndex);
  const { samplingSeed } = begin;
  const place = { rolloutId, groupId, groupIndex, sampleIndex, seed, attempt, start };
  return {
    task,
    ...place,
    ...(samplingSeed !== undefined && { samplingSeed }),
    ...(forkedFrom && { forkedFrom }),
  };
}

/**
 * Plays a recorded episode again, and compares the result with the stored one, byte by byte.
 *
 * @throws InvariantError for a bug of this package.
 */
export async function replayEpisode(
  { recorded, row, samples, runId }: StoredEpisode,
  { setup, redactor, scoreAnew = false }: ReplayOptions,
): Promise<ReplayVerdict> {
  if (isOfOtherRun(recorded.begin, runId)) {
    return { type: "diverged", reason: describeCopy(recorded.begin, runId) };
  }
  if (isOfOtherAttempt(recorded.begin, row)) {
    return { type: "unrecorded", reason: describeOtherAttempt(recorded.begin, row) };
  }
  if (row !== undefined && recorded.isUnrecorded) {
    const reason =
      "its recording is of its beginning: a start that records nothing played the rest";
    return { type: "unrecorded", reason };
  }
  const lost = describeLostTask(recorded.begin);
  if (lost !== undefined) return { type: "diverged", reason: lost };
  const assignment = recordedAssignment(setup.environment, recorded);
  let played: Episode;
  try {
    played = await playEpisode(assignment, setup, {
      signal: new AbortController().signal,
      past: recorded.inputs,
      atEnd: "replay",
      scoreAnew,
      ...(redactor && { redactor }),
      ...(assignment.forkedFrom && { forkAt: assignment.forkedFrom.turnIndex }),
    });
  } catch (error) {
    if (!(error instanceof PlaybackStop)) throw error;
    if (!(error instanceof RecordingEnd)) return { type: "diverged", reason: error.message };
    if (row === undefined) return { type: "unfinished", reason: error.message };
    const never = describeNeverParted(row);
    if (never !== undefined) return { type: "diverged", reason: never };
    const { name, repeatable = false } = setup.environment;
    if (scoreAnew && !repeatable) {
      const reason = `${name} is not repeatable: it cannot be scored again`;
      return { type: "diverged", reason };
    }
    const why = recorded.hasEnded
      ? "it is damaged"
      : "it is damaged, or a start that records nothing went on with it and was killed";
    return { type: "diverged", reason: `${error.message}, and the episode went on: ${why}` };
  }
  const episode = await redactEpisode(played, redactor);
  if (row === undefined) return { type: "unfinished", reason: "it is not among the finished ones" };
  const rows = episodeSamples(episode);
  const place =
    firstDifference(replayable(row), withoutSegments(episode), "episode") ??
    firstDifference(samples, rows, "samples");
  const isSame =
    place === undefined &&
    rows.every((sample, index) => hashRow(sample) === row.sampleHashes[index]);
  if (isSame) return { type: "identical", episode };
  return { type: "differs", episode, place: place ?? "the spelling of a row" };
}

/** Returns the reason for which a branch has no recording, although none was lost. */
function describeNeverParted({ failure, forkedFrom }: EpisodeRow): string | undefined {
  if (forkedFrom === undefined || failure?.code.endsWith("/not-repeatable") !== true)
    return undefined;
  const { rolloutId, turnIndex } = forkedFrom;
  return (
    `it failed before turn ${turnIndex}, with which it was to branch from ${rolloutId} (${failure.code}): ` +
    "nothing of its own is recorded that could be played again"
  );
}

/** Returns a row without its hashes, and without troubles: cleaning up the world after the episode is not recorded. */
function replayable({
  sampleHashes: _hashes,
  lineage: _lineage,
  troubles: _troubles,
  ...story
}: EpisodeRow): object {
  return story;
}

function withoutSegments({ segments: _segments, ...story }: Episode): object {
  return story;
}

/** Names the first place in which two JSON-able values differ; returns `undefined` if they are equal. */
function firstDifference(before: unknown, now: unknown, place: string): string | undefined {
  const found = findDifference(before, now);
  return (
    found &&
    `${place}${found.place} was ${shortJson(found.before, 120)} and is ${shortJson(found.now, 120)}`
  );
}

/** Finds the first place in which two values differ. Builds the place's name only on the way back. */
function findDifference(
  before: unknown,
  now: unknown,
): { readonly place: string; readonly before: unknown; readonly now: unknown } | undefined {
  // JSON has no negative zero.
  if (Object.is(before, now) || before === now) return undefined;
  if (!isObject(before) || !isObject(now) || Array.isArray(before) !== Array.isArray(now)) {
    return { place: "", before, now };
  }
  if (Array.isArray(before) && Array.isArray(now)) {
    for (let index = 0; index < Math.max(before.length, now.length); index++) {
      const found = findDifference(before[index], now[index]);
      if (found !== undefined) return { ...found, place: `[${index}]${found.place}` };
    }
    return undefined;
  }
  const [old, fresh] = [before, now] as Readonly<Record<string, unknown>>[];
  for (const key of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const found = findDifference(old![key], fresh![key]);
    if (found !== undefined) return { ...found, place: `.${key}${found.place}` };
  }
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
