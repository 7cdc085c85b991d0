import type { Episode } from "../../episode/episode.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { turnsIn, type Inputs } from "../../episode/inputs/input.ts";
import { PlaybackStop } from "../../outside.ts";
import { failedEpisode } from "../../episode/unplayed-episode.ts";
import { SmallerLimit } from "../../episode/play-episode.ts";
import { RolloutError } from "../../errors.ts";
import { startDeadline } from "../../async/deadline.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import { playHere, type AttemptPlayer } from "./attempt-player.ts";
import { attemptsLeft, type AttemptJob } from "../schedule/open-group.ts";
import { ownTaskOf } from "./recorded-task.ts";
import type { RecordedAttempt } from "../recording/read-recording.ts";
import type { AttemptRecording, RecordingJournal } from "../recording/recording-journal.ts";
import { redactEpisode } from "../folder/redact-episode.ts";
import { packedOf, type DescribedTrouble, type TurnTotals } from "../packed/packed-episode.ts";
import { readPacked } from "../recording/read-packed.ts";
import { describeTrouble, withTroubles } from "./troubles.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import type { RunTally } from "../run-progress.ts";

/** The environment of an attempt: its setup, its signals, and the parts of the run that follow it. */
export interface AttemptOptions {
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  /** The maximum number of plays of an attempt. The failure of the last one is final. */
  readonly attempts: number;
  /** Aborts when the run stops: the attempt has no episode. */
  readonly signal: AbortSignal;
  /** Aborts when the run is interrupted: the episode ends as `aborted`. */
  readonly interrupt: AbortSignal;
  /** Aborts when the group does not need the attempt any more. */
  readonly cancel: AbortSignal;
  readonly tally: RunTally;
  readonly folder?: RunFolder;
  readonly recording?: RecordingJournal;
  readonly redactor?: Redactor;
  /** True to return the inputs together with the episode. Default false. */
  readonly keepsInputs?: boolean;
  /** Default: this process. */
  readonly player?: AttemptPlayer;
  readonly onProgress: () => void;
}

/** The episode of an attempt, and its recording. */
export interface PlayedAttempt {
  readonly episode: Episode;
  /** The recorded inputs. Present with `keepsInputs`. */
  readonly inputs?: Inputs;
  /** The number of turns that this start did not sample: they were resumed, or shared with another attempt. */
  readonly recordedCount: number;
  /**
   * Closes the recording, so that the attempt is not resumed. Call it when the episode is synced. After a crash before
   * this call, the recording restores the episode.
   */
  readonly close: () => void;
}

interface PlayOptions extends AttemptOptions {
  /** The number of the play, from 1. Another play follows a failed one. */
  readonly attempt: number;
  /** The recording from which this play is resumed. */
  readonly past: RecordedAttempt | undefined;
}

/** Plays an attempt once and records its inputs. */
export async function playOnce(job: AttemptJob, options: PlayOptions): Promise<PlayedAttempt> {
  const { assignment, fork, group } = job;
  const { attempt, past, redactor, tally, player = playHere } = options;
  const start = (past?.begin.start ?? 0) + 1;
  const { rolloutId, forkedFrom } = assignment;
  const inputs = inputsToReplay(fork, past?.inputs ?? fork?.inputs);
  const kept = options.keepsInputs === true ? keepInputs(inputs) : undefined;
  const written = beginRecording(job, options, start);
  const troubles: RolloutError[] = [];
  const recordedCount = inputs === undefined ? 0 : turnsIn(inputs);
  const countTurn = (turn: TurnTotals): void => {
    if (turn.turnIndex >= recordedCount) tally.turnEnded(turn);
  };
  const setup: EpisodeSetup = {
    ...options.setup,
    onTurn: countTurn,
    onTrouble: (trouble) => troubles.push(trouble),
  };
  using stop = startDeadline({ ms: Infinity, parents: [options.cancel], shared: [options.signal] });
  const startedAtMs = setup.now();
  const playing = player.play({ ...assignment, attempt, start }, setup, {
    groupLeft: attemptsLeft(group),
    signal: stop.signal,
    interrupt: options.interrupt,
    ...(inputs && { past: inputs }),
    ...(redactor && { redactor }),
    ...(forkedFrom && { forkAt: forkedFrom.turnIndex }),
    ...(written && { recordedAt: written.point() }),
    ...((written ?? kept) && {
      onInputs: (more: Inputs) => {
        written?.add(more);
        kept?.add(more);
      },
    }),
  });
  const played = await playing.catch((error: unknown) => {
    if (forkedFrom === undefined) throw error;
    // The caller drops the recording and plays the attempt again.
    if (past !== undefined && error instanceof PlaybackStop) throw error;
    const isOwn = group.sharedPrefix?.episode.rolloutId === forkedFrom.rolloutId;
    const failure = toForkFailure(error, { rolloutId, forkedFrom, isOwn });
    troubles.push(failure);
    return failedEpisode(failure, { ...assignment, attempt, start }, { setup, startedAtMs });
  });
  const close = (): void => {
    written?.end();
    player.landed?.({ rolloutId, attempt });
  };
  const packed = packedOf(played);
  if (packed !== undefined) {
    written?.addPacked(packed.recording);
    if (kept !== undefined) for (const part of readPacked(packed.recording)) kept.add(part);
    for (const turn of packed.turns) countTurn(turn);
    await writeTroubles(packed.troubles, { ...options, rolloutId });
    return { episode: played, recordedCount, ...(kept && { inputs: kept.inputs }), close };
  }
  const clean = await redactEpisode(played, redactor);
  for (const trouble of troubles) redactor?.error(trouble);
  const failures = troubles.map((trouble) => trouble.toFailure());
  const episode = withTroubles(clean, redactor?.without(failures) ?? failures);
  const described = troubles.map((trouble) => describeTrouble(trouble, redactor));
  await writeTroubles(described, { ...options, rolloutId });
  return { episode, recordedCount, ...(kept && { inputs: kept.inputs }), close };
}

/** Starts or continues the recording of an attempt; returns `undefined` if the run records nothing. */
function beginRecording(
  { assignment, fork, group }: AttemptJob,
  options: PlayOptions,
  start: number,
): AttemptRecording | undefined {
  const { attempt, folder, past, setup } = options;
  // An agent with a `play` of its own is not recorded.
  const recording = setup.play === undefined ? options.recording : undefined;
  if (recording === undefined) return undefined;
  const { groupId, groupIndex, task } = group;
  const { rolloutId, sampleIndex, seed, samplingSeed, forkedFrom } = assignment;
  const run = folder?.manifest.runId;
  const own = ownTaskOf(group, options);
  const written = recording.begin({
    rolloutId,
    attempt,
    start,
    groupId,
    groupIndex,
    sampleIndex,
    seed,
    ...(samplingSeed !== undefined && { samplingSeed }),
    ...(forkedFrom && { forkedFrom }),
    ...(run !== undefined && { run }),
    split: task.split,
    taskIndex: task.index,
    ...(own && { ownTask: own }),
    atMs: setup.now(),
    ...(past && { partCount: past.partCount, lastHash: past.lastHash }),
  });
  // The recording of a fork is complete: it repeats the shared inputs.
  if (past === undefined && fork !== undefined) written.add(fork.inputs);
  return written;
}

/** Writes an event for each problem that did not end the episode. */
async function writeTroubles(
  troubles: readonly DescribedTrouble[],
  { attempt, folder, rolloutId, setup }: PlayOptions & { readonly rolloutId: string },
): Promise<void> {
  for (const { code, message, stack } of troubles) {
    const event = { type: "trouble", atMs: setup.now(), rolloutId, attempt };
    await folder?.writeEvent({ ...event, code, message, stack });
  }
}

/** Adds the hash of the prompt after the shared turns, which a fork's recording does not contain. */
function inputsToReplay(fork: AttemptJob["fork"], inputs: Inputs | undefined): Inputs | undefined {
  const { nextPromptHash } = fork?.inputs ?? {};
  return inputs && { ...inputs, ...(nextPromptHash !== undefined && { nextPromptHash }) };
}

/**
 * Converts an error that prevented a fork. A failed playback can be repeated, because the inputs may have been damaged
 * on their way to another process. A smaller limit fails the attempt if the run itself made the branch, because no
 * other settings could play it.
 *
 * @param options - `isOwn` is true for branches within a group of this run.
 * @throws all other errors.
 */
function toForkFailure(
  error: unknown,
  {
    rolloutId,
    forkedFrom,
    isOwn,
  }: { readonly rolloutId: string; readonly forkedFrom: ForkPlace; readonly isOwn: boolean },
): RolloutError {
  if (error instanceof SmallerLimit && isOwn) {
    return new RolloutError("internal/playback", error.message, { cause: error });
  }
  if (!(error instanceof PlaybackStop)) throw error;
  const { rolloutId: from, turnIndex } = forkedFrom;
  const message = `Cannot part ${rolloutId} from ${from} with turn ${turnIndex}: ${error.message}`;
  return new RolloutError("internal/playback", message, { cause: error, retryable: true });
}

/** Collects inputs after those of `before`. */
function keepInputs(before: Inputs | undefined) {
  const inputs = { inputs: [...(before?.inputs ?? [])], times: [...(before?.times ?? [])] };
  return {
    inputs,
    add: (more: Inputs): void => {
      for (const input of more.inputs) inputs.inputs.push(input);
      for (const time of more.times) inputs.times.push(time);
    },
  };
}
