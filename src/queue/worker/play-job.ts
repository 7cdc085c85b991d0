import type { ColumnParts } from "../../columns/column-part.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import type { Episode } from "../../episode/episode.ts";
import { episodeFault } from "../../episode/play-foreign.ts";
import { turnsIn, type Inputs } from "../../episode/inputs/input.ts";
import { PlaybackStop } from "../../outside.ts";
import { SmallerLimit } from "../../episode/play-episode.ts";
import {
  describeError,
  describeStack,
  ownBug,
  UsageError,
  type RolloutError,
} from "../../errors.ts";
import type { Clock } from "../../async/clock.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { playAttempt } from "../../run/attempt/attempt-player.ts";
import { describeTrouble, withTroubles } from "../../run/attempt/troubles.ts";
import { packEpisode } from "../../run/packed/pack-episode.ts";
import type { DescribedTrouble, PackedRecording } from "../../run/packed/packed-episode.ts";
import { drawTask } from "../../run/schedule/plan-run.ts";
import { redactEpisode } from "../../run/folder/redact-episode.ts";
import type { Task } from "../../task.ts";
import { baseOf, recordedAtOf, type AttemptJob } from "../job/attempt-job.ts";
import { writeResult, type Answer, type PlayedFrom } from "../job/attempt-result.ts";
import { joinInputs, LineWriter } from "../job/job-recording.ts";
import { PayloadError, sendPayload, takePayload } from "../job/payload.ts";
import type { SharedPlace } from "../place/shared-place.ts";
import { NamedColumns } from "./named-columns.ts";
import { openSharedRecording, readPast, type SharedRecording } from "./shared-recording.ts";

/** The job to play, and the parts to play it with. */
interface JobPlay {
  readonly id: string;
  readonly job: AttemptJob;
  /** The number of times a worker took the job, as the queue counts. At least 1. */
  readonly deliveries: number;
  readonly worker: string;
  readonly setup: EpisodeSetup;
  readonly place: SharedPlace | undefined;
  /** True if the hand-out reads the same shared place. */
  readonly sharesResults: boolean;
  /** True to record the attempt, so that another worker can resume it. */
  readonly isRecorded: boolean;
  readonly redactor: Redactor;
  /** Resolves with true if other workers may resume from the samples so far. */
  readonly mayRecord: () => Promise<boolean>;
  /** Syncs the side columns of the turns so far. Absent if the run has no columns. */
  readonly syncColumns?: () => Promise<void>;
  /** The clock for waits on the shared place. */
  readonly clock: Clock;
  /** Aborts if the result is not needed, or if another worker has the job. */
  readonly signal: AbortSignal;
  /** Aborts to interrupt the attempt. The attempt then ends with the turns so far. */
  readonly interrupt: AbortSignal;
}

/** The result of playing a job. */
interface PlayedJob {
  readonly answer: Answer;
  /** Removes the play's recording. Call it when the answer is in the store. */
  readonly forget: () => Promise<void>;
}

/**
 * Plays a job to its end. Resumes from an earlier worker's recording if there is one.
 * @throws the signal's reason if it is aborted.
 */
export async function playJob(play: JobPlay): Promise<PlayedJob> {
  const { job, worker, signal } = play;
  const state: { recording?: SharedRecording | undefined } = {};
  try {
    return await playRecorded(play, state);
  } catch (error) {
    await state.recording?.close();
    signal.throwIfAborted();
    play.redactor.error(error);
    const why = whyOf(error);
    const description = why === "bug" ? describeStack(error) : describeError(error);
    const message = play.redactor.text(description).slice(0, 100_000);
    return {
      answer: { answer: 1, type: "not-played", handOut: job.handOut, worker, why, message },
      forget: async () => await forget(state.recording),
    };
  }
}

function whyOf(error: unknown): Extract<Answer, { type: "not-played" }>["why"] {
  if (error instanceof PlaybackStop) return "playback";
  // Another worker may be able to read the payload.
  if (error instanceof PayloadError) return "unfit";
  if (error instanceof SmallerLimit) return "limit";
  return error instanceof UsageError ? "usage" : "bug";
}

async function playRecorded(
  play: JobPlay,
  state: { recording?: SharedRecording | undefined },
): Promise<PlayedJob> {
  const { id, job, place, isRecorded, worker } = play;
  const sent = await takePast(play);
  // Attempts of foreign agents are not recorded.
  const isKept = isRecorded && play.setup.play === undefined;
  const recording = isKept && place !== undefined ? await openRecording(place, play) : undefined;
  state.recording = recording;
  const base = sent ?? [];
  const earlier = recording?.earlier;
  // A store that has lost data counts from 1 again. The shared place has the true number.
  const number = Math.max(play.deliveries, recording?.number ?? 1);
  // Without earlier lines no worker was lost: an earlier start of the run that cancelled the job
  // may have left its empty file.
  const deliveries = earlier === undefined ? play.deliveries : number;
  let dropped: string | undefined;
  let from: PlayedFrom = deliveries === 1 ? "first" : earlier === undefined ? "anew" : "recording";
  let played: Awaited<ReturnType<typeof playOnce>>;
  try {
    played = await playOnce(play, { base, earlier, recording, start: job.start + number - 1 });
  } catch (error) {
    if (!(error instanceof PlaybackStop) || earlier === undefined) throw error;
    // The earlier worker's recording does not match.
    dropped = error.message.slice(0, 10_000);
    from = "anew";
    recording?.restart();
    const start = job.start + number;
    played = await playOnce(play, { base, earlier: undefined, recording, start });
  }
  const { episode, ...about } = played;
  const result = writeResult(
    {
      base: baseOf(job),
      recordedAt: recordedAtOf(job),
      deliveries,
      from,
      recordedTurns: from === "recording" ? turnsIn(joinInputs(earlier?.parts ?? [])) : 0,
      ...(dropped !== undefined && { dropped }),
    },
    await packEpisode(episode, about),
  );
  // The answer names columns by hash, so their bytes come first.
  await play.syncColumns?.();
  const payload = await sendPayload(result, {
    place: play.sharesResults ? place : undefined,
    name: `results/${job.run}/${id}`,
    what: `the result of ${job.rolloutId}`,
    clock: play.clock,
  });
  return {
    answer: { answer: 1, type: "played", handOut: job.handOut, worker, result: payload },
    forget: async () => await forget(recording),
  };
}

/**
 * Opens the recording. If the shared place refuses it, another worker will repeat some turns, but
 * the run continues.
 */
async function openRecording(
  place: SharedPlace,
  about: Pick<JobPlay, "id" | "job" | "clock" | "mayRecord" | "syncColumns">,
): Promise<SharedRecording | undefined> {
  try {
    return await openSharedRecording(place, about);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    return undefined;
  }
}

/**
 * Removes a recording. Ignores errors, because the answer is in the store and a file that remains
 * does no harm.
 */
async function forget(recording: SharedRecording | undefined): Promise<void> {
  await recording?.remove().catch(() => {});
}

/**
 * Reads the recording from which the job resumes. If it cannot be read, an attempt that does not
 * need it starts from its beginning.
 */
async function takePast({ job, place, clock }: JobPlay): Promise<readonly Inputs[] | undefined> {
  if (job.past === undefined) return undefined;
  try {
    const sent = readPast(await takePayload(job.past, place, clock), job);
    if (sent !== undefined) return sent;
  } catch (error) {
    if (!(error instanceof PayloadError) || job.forkedFrom !== undefined) throw error;
    throw new PlaybackStop(error.message);
  }
  throw new PlaybackStop("what is recorded of it came damaged");
}

/**
 * Returns the job's task: the task that was sent with the job, or the task that the environment makes from split and
 * index.
 */
async function takeTask({ job, place, clock, setup }: JobPlay): Promise<Task> {
  const task =
    job.ownTask === undefined
      ? drawTask(setup.environment, job.split, job.taskIndex)
      : (JSON.parse(await takePayload(job.ownTask, place, clock)) as Task);
  if (task.id === job.taskId) return task;
  throw new UsageError(
    `Cannot play ${job.rolloutId}: task ${job.taskIndex} of "${job.split}" is ${task.id} here, and ` +
      `${job.taskId} in the run`,
  );
}

async function playOnce(
  play: JobPlay,
  from: {
    readonly base: readonly Inputs[];
    readonly earlier: SharedRecording["earlier"];
    readonly recording: SharedRecording | undefined;
    readonly start: number;
  },
): Promise<PlayedEpisode> {
  const { job, redactor, signal, interrupt } = play;
  const { base, earlier, recording, start } = from;
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, samplingSeed, forkedFrom } = job;
  const { partingHash } = job;
  const task = await takeTask(play);
  const writer = new LineWriter(job, {
    start: recordedAtOf(job),
    ...(earlier && { before: earlier }),
    clean: (json) => redactor.jsonText(json),
  });
  const troubles: RolloutError[] = [];
  const past = [...base, ...(earlier?.parts ?? [])];
  const named = new NamedColumns(base);
  for (const inputs of earlier?.parts ?? []) named.addInputs(inputs);
  const setup: EpisodeSetup = { ...play.setup, onTrouble: (trouble) => troubles.push(trouble) };
  const episode = await playAttempt(
    {
      task,
      rolloutId,
      groupId,
      sampleIndex,
      seed,
      attempt: job.attempt,
      start,
      ...(groupIndex !== undefined && { groupIndex }),
      ...(samplingSeed !== undefined && { samplingSeed }),
      ...(forkedFrom && { forkedFrom }),
    },
    setup,
    {
      signal,
      interrupt,
      redactor,
      ...(past.length > 0 && {
        past: { ...joinInputs(past), ...(partingHash && { nextPromptHash: partingHash }) },
      }),
      ...(forkedFrom && { forkAt: forkedFrom.turnIndex }),
      onInputs: (inputs) => {
        const line = writer.add(inputs);
        named.addInputs(inputs);
        recording?.add(line);
      },
    },
  );
  const clean = await redactEpisode(episode, redactor);
  for (const trouble of troubles) redactor.error(trouble);
  const failures = redactor.without(troubles.map((trouble) => trouble.toFailure()));
  const complete = withTroubles(clean, failures);
  const fault = episodeFault(complete, setup);
  if (fault !== undefined) throw ownBug(`the episode of ${rolloutId} is not sound: ${fault}`);
  named.addRows(complete);
  return {
    episode: complete,
    columns: named.parts,
    recording: writer.pack(),
    troubles: troubles.map((trouble) => {
      const { code, message, stack } = describeTrouble(trouble, redactor);
      return { code, message: message.slice(0, 100_000), stack: stack.slice(0, 50_000) };
    }),
  };
}

/** An episode that a worker played, with the rest of its result. */
interface PlayedEpisode {
  readonly episode: Episode;
  readonly recording: PackedRecording;
  readonly troubles: readonly DescribedTrouble[];
  /** The parts of side columns that rows and recording name, apart from those that the job named. */
  readonly columns: ColumnParts | undefined;
}
