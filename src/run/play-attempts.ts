import type { Episode } from "../episode/episode.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import type { Inputs } from "../episode/input.ts";
import { PlaybackStop } from "../episode/input-player.ts";
import { playEpisode } from "../episode/play-episode.ts";
import { describeStack, type RolloutError } from "../errors.ts";
import { startDeadline } from "../internal/deadline.ts";
import type { Redactor } from "../internal/redactor.ts";
import type { AttemptJob } from "./group-book.ts";
import type { RecordedAttempt } from "./read-recording.ts";
import type { RecordingJournal } from "./recording-journal.ts";
import type { RunFolder } from "./run-folder.ts";
import type { RunTally } from "./run-progress.ts";

/** What an attempt is played with. */
export interface AttemptOptions {
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  /** Plays before a failure is final. */
  readonly attempts: number;
  /** Aborted, there is no episode. */
  readonly signal: AbortSignal;
  /** Aborted, the episode ends as `aborted` with what it has. */
  readonly interrupt: AbortSignal;
  /** Aborted, the attempt is not needed any more. */
  readonly giveUp: AbortSignal;
  readonly tally: RunTally;
  readonly folder?: RunFolder;
  readonly recording?: RecordingJournal;
  readonly redactor?: Redactor;
  readonly onProgress: () => void;
}

/**
 * Plays an attempt until it ends otherwise than by a failure, or often enough. Where an earlier start was
 * stopped in the middle of it, it goes on from what was recorded.
 *
 * @returns nothing where its group does not need it any more.
 */
export async function playAttempts(
  job: AttemptJob,
  options: AttemptOptions,
): Promise<Episode | undefined> {
  const { attempts, folder, tally } = options;
  const recorded = await folder?.recordingOf(job.assignment.rolloutId);
  const first = recorded === undefined ? 1 : recorded.begin.attempt + (recorded.hasEnded ? 1 : 0);
  let past = recorded?.hasEnded === false ? recorded : undefined;
  for (let attempt = first; ; attempt++) {
    options.onProgress();
    let episode: Episode;
    try {
      episode = await playOnce(job, { ...options, attempt, past });
    } catch (error) {
      if (options.giveUp.aborted && !options.signal.aborted) return undefined;
      if (!(error instanceof PlaybackStop) || past === undefined) throw error;
      // What was recorded does not lead on: the attempt begins anew, and that is no failure.
      await folder?.writeEvent({
        ...{ type: "recording-dropped", atMs: options.setup.now() },
        ...{ rolloutId: job.assignment.rolloutId, attempt, message: error.message },
      });
      past = undefined;
      continue;
    }
    past = undefined;
    const isLast = attempt - first + 1 >= attempts;
    if (episode.outcome !== "failed" || isLast) return episode;
    tally.attemptRetried();
    const event = episodeEvent("attempt-failed", episode, options.setup.now());
    await folder?.writeEvent({ ...event, attempt });
  }
}

async function playOnce(
  { assignment, fork, group }: AttemptJob,
  options: AttemptOptions & {
    readonly attempt: number;
    readonly past: RecordedAttempt | undefined;
  },
): Promise<Episode> {
  const { attempt, folder, past, recording, redactor, tally } = options;
  const start = (past?.begin.start ?? 0) + 1;
  const { groupId, groupIndex, task } = group;
  const { rolloutId, sampleIndex, seed, samplingSeed, forkedFrom } = assignment;
  const inputs = past?.inputs ?? fork?.inputs;
  const written = recording?.begin({
    ...{ rolloutId, attempt, start, groupId, groupIndex, sampleIndex, seed },
    ...(samplingSeed === undefined ? {} : { samplingSeed }),
    ...(forkedFrom && { forkedFrom }),
    ...{ split: task.split, taskIndex: task.index, atMs: options.setup.now() },
    ...(past && { partCount: past.partCount, lastHash: past.lastHash }),
  });
  // A fork's recording stands for itself.
  if (past === undefined && fork !== undefined) written?.add(fork.inputs);
  const troubles: RolloutError[] = [];
  const setup: EpisodeSetup = {
    ...options.setup,
    onTurn: (turn) => tally.turnEnded(turn),
    onTrouble: (trouble) => troubles.push(trouble),
  };
  using stop = startDeadline({ ms: Infinity, parents: [options.signal, options.giveUp] });
  const played = await playEpisode({ ...assignment, attempt, start }, setup, {
    signal: stop.signal,
    interrupt: options.interrupt,
    ...(inputs && { past: inputs }),
    ...(forkedFrom && { forkAt: forkedFrom.turnIndex }),
    ...(written && { onInputs: (more: Inputs) => written.add(more) }),
  });
  if (played.outcome !== "aborted") written?.end();
  const episode = await redact(played, redactor);
  for (const trouble of troubles) {
    redactor?.error(trouble);
    const { code, message } = trouble;
    const stack = describeStack(trouble);
    const event = { type: "trouble", atMs: setup.now(), rolloutId, attempt };
    await folder?.writeEvent({ ...event, code, message, stack });
  }
  return episode;
}

/** Whatever the text of an episode comes from, it passes here before anybody else sees it. */
async function redact(episode: Episode, redactor: Redactor | undefined): Promise<Episode> {
  if (redactor === undefined) return episode;
  const { segments, ...story } = episode;
  return { ...(await redactor.cleanInTurns(story)), segments };
}

/** The event that tells of an episode. */
export function episodeEvent(type: string, episode: Episode, atMs: number) {
  const { rolloutId, outcome, stopReason, reward, failure, durationMs } = episode;
  return {
    type,
    atMs,
    rolloutId,
    outcome,
    stopReason,
    ...(reward === undefined ? {} : { reward }),
    ...(failure === undefined ? {} : { failure }),
    durationMs,
  };
}
