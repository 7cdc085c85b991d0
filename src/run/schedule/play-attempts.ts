import type { Episode } from "../../episode/episode.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { turnsIn, type Inputs } from "../../episode/inputs/input.ts";
import { PlaybackStop } from "../../outside.ts";
import { failedEpisode } from "../../episode/unplayed-episode.ts";
import { SmallerLimit } from "../../episode/play-episode.ts";
import { RolloutError, UsageError, describeStack, type Failure } from "../../errors.ts";
import { startDeadline } from "../../async/deadline.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import { playHere, type AttemptPlayer } from "./attempt-player.ts";
import { attemptsLeft, type AttemptJob, type OpenGroup } from "./group-ledger.ts";
import { ownTask, taskKey, type OwnTask } from "../folder/task-record.ts";
import { warnOfNames } from "../folder/open-names.ts";
import type { RecordedAttempt } from "../recording/read-recording.ts";
import { describeCopy, isOfOtherRun } from "../recording/recording-line.ts";
import type { RecordingJournal } from "../recording/recording-journal.ts";
import { redactEpisode } from "../folder/redact-episode.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import type { RunTally } from "../run-progress.ts";

/** What an attempt is played with. */
interface AttemptOptions {
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
  /** Whether the inputs are handed over with the episode. Default false. */
  readonly keepsInputs?: boolean;
  /** Default: this process. */
  readonly player?: AttemptPlayer;
  readonly onProgress: () => void;
}

/** An episode as it was played, and its recording. */
interface PlayedAttempt {
  readonly episode: Episode;
  /** Absent where nobody asked for them. */
  readonly inputs?: Inputs;
  /** Its first turns, which this start did not sample: they were recorded before, here or in what it parts from. */
  readonly recordedCount: number;
  /**
   * Closes the recording: it is not gone on with. To be called once the episode is on the disk, so that
   * whatever a crash leaves of it can be played again from the recording.
   */
  readonly close: () => void;
}

/**
 * Plays an attempt until it ends otherwise than by a failure, or often enough. Where an earlier start was
 * stopped in the middle of it, it goes on from what was recorded.
 *
 * @returns nothing where its group does not need it any more, or the run is interrupted before it is played (again).
 */
export async function playAttempts(
  job: AttemptJob,
  options: AttemptOptions,
): Promise<PlayedAttempt | undefined> {
  const { attempts, folder, redactor, setup, tally } = options;
  requireWholeFork(job, setup);
  warnOfNames(job.group, redactor);
  const recorded =
    setup.play === undefined ? await folder?.recordings.read(job.assignment.rolloutId) : undefined;
  let first = recorded === undefined ? 1 : recorded.begin.attempt + (recorded.hasEnded ? 1 : 0);
  let past = recorded?.hasEnded === false ? recorded : undefined;
  const drop = async (message: string): Promise<void> => {
    const { rolloutId } = job.assignment;
    const about = { rolloutId, attempt: first, message: redactor?.text(message) ?? message };
    await folder?.writeEvent({
      type: "recording-dropped",
      atMs: options.setup.now(),
      ...about,
    });
    // It begins anew, and that is no failure.
    first += 1;
    past = undefined;
  };
  const runId = folder?.manifest.runId;
  if (past !== undefined && isOfOtherRun(past.begin, runId)) {
    await drop(describeCopy(past.begin, runId));
  } else if (past !== undefined && !isOf(past, job, options)) {
    await drop("it is the recording of another run's attempt");
  }
  for (let attempt = first; ; attempt++) {
    // The next start goes on with it.
    if (options.interrupt.aborted) return undefined;
    options.onProgress();
    let played: PlayedAttempt;
    try {
      played = await playOnce(job, { ...options, attempt, past });
    } catch (error) {
      const { giveUp, signal } = options;
      // Whoever has its group may leave the run before this one has come to its end.
      if (giveUp.aborted && (!signal.aborted || error === giveUp.reason)) return undefined;
      if (!(error instanceof PlaybackStop) || past === undefined) throw error;
      // What was recorded does not lead on.
      await drop(error.message);
      continue;
    }
    past = undefined;
    const isLast = attempt - first + 1 >= attempts;
    const { episode, close } = played;
    if (episode.outcome !== "failed" || isLast) return played;
    close();
    tally.attemptRetried();
    const event = episodeEvent("attempt-failed", episode, options.setup.now());
    await folder?.writeEvent({ ...event, attempt });
  }
}

/** A source may be anyone's: fewer turns would be sampled anew, and further ones trained twice. */
function requireWholeFork(
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

/** Whether a recording is of this very attempt, and not of one with the same name in another run. */
function isOf(
  { begin }: RecordedAttempt,
  { assignment, group }: AttemptJob,
  options: Pick<AttemptOptions, "setup" | "redactor">,
): boolean {
  const { samplingSeed, forkedFrom } = assignment;
  return (
    begin.groupId === group.groupId &&
    begin.groupIndex === group.groupIndex &&
    begin.sampleIndex === assignment.sampleIndex &&
    begin.split === group.task.split &&
    begin.taskIndex === group.task.index &&
    isOfTask(begin, group, options) &&
    begin.seed === assignment.seed &&
    begin.samplingSeed === samplingSeed &&
    begin.forkedFrom?.rolloutId === forkedFrom?.rolloutId &&
    begin.forkedFrom?.turnIndex === forkedFrom?.turnIndex
  );
}

const ownTasks = new WeakMap<OpenGroup, { readonly own: OwnTask | undefined }>();

/** What is written of a group's task. Looked at before anybody plays it: environments may write into it. */
function ownTaskOf(
  group: OpenGroup,
  { setup, redactor }: Pick<AttemptOptions, "setup" | "redactor">,
): OwnTask | undefined {
  let known = ownTasks.get(group);
  if (known === undefined) {
    const about = { environment: setup.environment, ...(redactor && { redactor }) };
    known = { own: ownTask(group.task, about) };
    ownTasks.set(group, known);
  }
  return known.own;
}

/** Whether a recording's attempt was played with a group's task, as far as it tells. */
function isOfTask(
  { ownTask: recorded }: RecordedAttempt["begin"],
  group: OpenGroup,
  options: Pick<AttemptOptions, "setup" | "redactor">,
): boolean {
  if (recorded === undefined) return true;
  return recorded.hash === (ownTaskOf(group, options)?.hash ?? taskKey(group.task));
}

async function playOnce(
  { assignment, fork, group }: AttemptJob,
  options: AttemptOptions & {
    readonly attempt: number;
    readonly past: RecordedAttempt | undefined;
  },
): Promise<PlayedAttempt> {
  const { attempt, folder, past, redactor, tally, player = playHere } = options;
  const recording = options.setup.play === undefined ? options.recording : undefined;
  const start = (past?.begin.start ?? 0) + 1;
  const { groupId, groupIndex, task } = group;
  const { rolloutId, sampleIndex, seed, samplingSeed, forkedFrom } = assignment;
  const inputs = partingFrom(fork, past?.inputs ?? fork?.inputs);
  const run = folder?.manifest.runId;
  const own = recording && ownTaskOf(group, options);
  const kept = options.keepsInputs === true ? keepInputs(inputs) : undefined;
  const written = recording?.begin({
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
    atMs: options.setup.now(),
    ...(past && { partCount: past.partCount, lastHash: past.lastHash }),
  });
  // A fork's recording stands for itself.
  if (past === undefined && fork !== undefined) written?.add(fork.inputs);
  const troubles: RolloutError[] = [];
  // These an earlier start sampled, or the episode that this one parts from.
  const recordedCount = inputs === undefined ? 0 : turnsIn(inputs);
  const setup: EpisodeSetup = {
    ...options.setup,
    onTurn: (turn) => {
      if (turn.turnIndex >= recordedCount) tally.turnEnded(turn);
    },
    onTrouble: (trouble) => troubles.push(trouble),
  };
  using stop = startDeadline({ ms: Infinity, parents: [options.giveUp], shared: [options.signal] });
  const startedAtMs = setup.now();
  const playing = player.play({ ...assignment, attempt, start }, setup, {
    groupLeft: attemptsLeft(group),
    signal: stop.signal,
    interrupt: options.interrupt,
    ...(inputs && { past: inputs }),
    ...(redactor && { redactor }),
    ...(forkedFrom && { forkAt: forkedFrom.turnIndex }),
    ...((written ?? kept) && {
      onInputs: (more: Inputs) => {
        written?.add(more);
        kept?.add(more);
      },
    }),
  });
  const played = await playing.catch((error: unknown) => {
    if (forkedFrom === undefined) throw error;
    // It begins anew then.
    if (past !== undefined && error instanceof PlaybackStop) throw error;
    const isOwn = group.trunk?.episode.rolloutId === forkedFrom.rolloutId;
    const failure = toForkFailure(error, { rolloutId, forkedFrom, isOwn });
    troubles.push(failure);
    return failedEpisode(failure, { ...assignment, attempt, start }, { setup, startedAtMs });
  });
  const clean = await redactEpisode(played, redactor);
  for (const trouble of troubles) redactor?.error(trouble);
  const failures = troubles.map((trouble) => trouble.toFailure());
  const episode = withTroubles(clean, redactor?.without(failures) ?? failures);
  for (const trouble of troubles) {
    const { code } = trouble;
    const message = redactor?.text(trouble.message) ?? trouble.message;
    // What was thrown may be a text, or an error that cannot be changed.
    const told = describeStack(trouble);
    const stack = redactor?.text(told) ?? told;
    const event = { type: "trouble", atMs: setup.now(), rolloutId, attempt };
    await folder?.writeEvent({ ...event, code, message, stack });
  }
  const close = (): void => {
    written?.end();
    player.landed?.({ rolloutId, attempt });
  };
  return { episode, recordedCount, ...(kept && { inputs: kept.inputs }), close };
}

/** What is recorded of a fork does not say with what the policy was asked where it parts. */
function partingFrom(fork: AttemptJob["fork"], inputs: Inputs | undefined): Inputs | undefined {
  const { nextPromptHash } = fork?.inputs ?? {};
  return inputs && { ...inputs, ...(nextPromptHash !== undefined && { nextPromptHash }) };
}

/**
 * What a fork shares did not reach whoever plays it, such as another process: that may be so this once. A
 * branch of the run's own has no settings by which it could be refused: nobody can start with others.
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

/** Gathers inputs behind those that are there already. */
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

/** Keeps with an episode what went wrong in it without ending it. */
function withTroubles(episode: Episode, met: readonly Failure[]): Episode {
  const { failure } = episode;
  const troubles = met.filter(
    ({ code, message }) => code !== failure?.code || message !== failure.message,
  );
  return troubles.length === 0 ? episode : { ...episode, troubles };
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
    ...(reward !== undefined && { reward }),
    ...(failure !== undefined && { failure }),
    durationMs,
  };
}
