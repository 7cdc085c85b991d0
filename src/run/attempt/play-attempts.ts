import type { ColumnStore } from "../../columns/column-store.ts";
import type { Episode } from "../../episode/episode.ts";
import { turnsIn } from "../../episode/inputs/input.ts";
import { PlaybackStop } from "../../outside.ts";
import { UsageError } from "../../errors.ts";
import { recordedParts } from "../columns/named-parts.ts";
import type { AttemptJob } from "../schedule/open-group.ts";
import { warnOfNames } from "../folder/open-names.ts";
import { playOnce, type AttemptOptions, type PlayedAttempt } from "./play-once.ts";
import { isRecordingOf } from "./recorded-task.ts";
import type { RecordedAttempt } from "../recording/read-recording.ts";
import { describeCopy, isOfOtherRun } from "../recording/recording-line.ts";

/**
 * Plays an attempt until an episode does not fail, or until its failure is final. Resumes a recording that an earlier
 * start left unfinished.
 *
 * @returns `undefined` if the group does not need the attempt any more, or the run is interrupted before it is played.
 */
export async function playAttempts(
  job: AttemptJob,
  options: AttemptOptions,
): Promise<PlayedAttempt | undefined> {
  const { attempts, folder, redactor, setup, tally } = options;
  requireCompleteFork(job, setup);
  warnOfNames(job.group, redactor);
  const { rolloutId } = job.assignment;
  const recorded = setup.play === undefined ? await folder?.recordings.read(rolloutId) : undefined;
  let first = recorded === undefined ? 1 : recorded.begin.attempt + (recorded.hasEnded ? 1 : 0);
  let past = recorded?.hasEnded === false ? recorded : undefined;
  const dropRecording = async (reason: string): Promise<void> => {
    const message = redactor?.text(reason) ?? reason;
    const details = { rolloutId, attempt: first, message };
    await folder?.writeEvent({ type: "recording-dropped", atMs: setup.now(), ...details });
    // The attempt is played from its first turn. That does not count as a failure.
    first += 1;
    past = undefined;
  };
  const fault =
    past && (recordingFault(past, job, options) ?? (await findLostColumn(past, setup.columnStore)));
  if (fault !== undefined) await dropRecording(fault);
  for (let attempt = first; ; attempt++) {
    // The next start resumes the attempt.
    if (options.interrupt.aborted) return undefined;
    options.onProgress();
    let played: PlayedAttempt;
    try {
      played = await playOnce(job, { ...options, attempt, past });
    } catch (error) {
      const { cancel, signal } = options;
      // The caller may leave the run after it has taken the group, while this attempt ends.
      if (cancel.aborted && (!signal.aborted || error === cancel.reason)) return undefined;
      if (!(error instanceof PlaybackStop) || past === undefined) throw error;
      await dropRecording(error.message);
      continue;
    }
    past = undefined;
    const isLast = attempt - first + 1 >= attempts;
    const { episode, close } = played;
    if (episode.outcome !== "failed" || isLast) return played;
    close();
    tally.attemptRetried();
    const event = episodeEvent("attempt-failed", episode, setup.now());
    await folder?.writeEvent({ ...event, attempt });
  }
}

/** Returns the reason for which a recording cannot be resumed as this attempt; `undefined` if it can. */
function recordingFault(
  past: RecordedAttempt,
  job: AttemptJob,
  options: AttemptOptions,
): string | undefined {
  const runId = options.folder?.manifest.runId;
  if (isOfOtherRun(past.begin, runId)) return describeCopy(past.begin, runId);
  if (isRecordingOf(past, job, options)) return undefined;
  return "it is the recording of another run's attempt";
}

/**
 * Returns the reason if the run's folder has lost side columns that a recording names; `undefined` if none are lost.
 */
async function findLostColumn(
  { inputs }: RecordedAttempt,
  columnStore: ColumnStore | undefined,
): Promise<string | undefined> {
  if (columnStore?.has === undefined) return undefined;
  for (const { name, part } of recordedParts(inputs)) {
    if (await columnStore.has(part.hash)) continue;
    return `the run's folder has no file with its column ${name} (part ${part.hash})`;
  }
  return undefined;
}

/**
 * Checks a fork that a caller's source gives. With fewer inputs than turns, shared turns would be sampled again; with
 * more, turns of the other attempt would be trained twice.
 */
function requireCompleteFork(
  { assignment, fork }: AttemptJob,
  { agent, play }: AttemptOptions["setup"],
): void {
  if (fork !== undefined && play !== undefined) {
    throw new UsageError(
      `Cannot part ${assignment.rolloutId} from ${fork.place.rolloutId}: the agent ${agent.strategy} ` +
        "keeps its conversations itself, and nothing brings it back to a turn",
    );
  }
  const turnCount = fork && turnsIn(fork.inputs);
  if (fork === undefined || turnCount === fork.place.turnIndex) return;
  throw new UsageError(
    `Cannot part ${assignment.rolloutId} from ${fork.place.rolloutId} with turn ` +
      `${fork.place.turnIndex}: the inputs are those of ${turnCount} turns (see inputsBefore())`,
  );
}

/** Makes the event of an episode or of a failed play. */
export function episodeEvent(type: string, episode: Episode, atMs: number) {
  const { rolloutId, outcome, stopReason, reward, failure, durationMs } = episode;
  return {
    type,
    atMs,
    rolloutId,
    outcome,
    stopReason,
    ...(reward !== undefined && { reward }),
    ...(failure !== undefined && { failure }),
    durationMs,
  };
}
