import type { EpisodeSetup } from "../episode/episode-setup.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Episode } from "../episode/episode.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { PlannedEpisode, RunPlan } from "../run/schedule/plan-run.ts";
import { RunFolder, type RunFolderOptions, type RunManifest } from "../run/folder/run-folder.ts";
import { startRun } from "../run/start-run.ts";
import type { AdmissionGate, StartRunOptions } from "../run/start-run-options.ts";
import { planSource, type TaskSource } from "../run/schedule/task-source.ts";
import { BatchProblem, drawing, lookingInto, planAccepted } from "./batch-problem.ts";
import type { PlayedAttempt, PlayedGroup } from "./batch-taker.ts";
import { planBatch, type Batch } from "./batch.ts";

/** What batches are played with. */
interface BatchPlay {
  /** The batch's folder. */
  readonly dir: string;
  readonly setup: StartRunOptions["setup"];
  /** What all batches share of `run.json`. */
  readonly manifest: RunManifest;
  readonly folder: Omit<RunFolderOptions, "retryFailed">;
  /** Places of all batches. */
  readonly places: AdmissionGate;
  readonly concurrency: number;
  /** Plays of an attempt before its failure is final. */
  readonly attempts: number;
  readonly redactor?: Redactor;
  /** Who plays. Default: this process. */
  readonly player?: AttemptPlayer;
  readonly deliver: (groupIndex: number, group: PlayedGroup) => Promise<void>;
}

/** Groups that are read back from the disk at once. */
const readTogether = 16;

/** Groups that wait to be stored before no further ones are begun. */
const ahead = 4;

/** Places in the queue that each batch has: more than it can have groups. */
const batchSpan = 65_536;

/**
 * Plays what is left of a batch and delivers each group as it ends, those too that an earlier start
 * finished and did not deliver. Once the batch's time is over, the rest is delivered as given up.
 *
 * @returns whether all of its groups are delivered.
 * @throws BatchProblem, or an error with that as its cause, where something is wrong with this batch alone.
 */
export async function playBatch(batch: Batch, play: BatchPlay): Promise<boolean> {
  const plan = planAccepted(() => planBatch(play.setup.environment, batch.request));
  const options = { ...play.folder, retryFailed: false };
  await using folder = await lookingInto(
    RunFolder.open(play.dir, manifestOf(batch, play), options),
  );
  const ended = new Map(folder.finished.map(({ rolloutId, taskIndex }) => [rolloutId, taskIndex]));
  // One that is late is told below, with what is missing.
  if (!batch.isLate) await deliverStored(batch, { play, plan, folder, ended, isGivenUp: false });
  if (!batch.stop.signal.aborted) {
    await playRest(batch, {
      play,
      plan,
      folder,
      onEpisode: ({ rolloutId, taskIndex }) => ended.set(rolloutId, taskIndex),
    });
  }
  if (batch.isLate && batch.state !== "cancelled") {
    await deliverStored(batch, { play, plan, folder, ended, isGivenUp: true });
  }
  return batch.delivered.size === batch.request.tasks.length;
}

async function playRest(
  batch: Batch,
  rest: {
    readonly play: BatchPlay;
    readonly plan: RunPlan;
    readonly folder: RunFolder;
    readonly onEpisode: (episode: Episode) => void;
  },
): Promise<void> {
  const { play, plan, folder, onEpisode } = rest;
  const { setup, concurrency, attempts, redactor, places, player } = play;
  const sampling: EpisodeSetup["sampling"] = { ...setup.sampling, ...batch.request.sampling };
  const gate: AdmissionGate = {
    admit: async ({ priority, signal }) =>
      await places.admit({ priority: batch.number * batchSpan + priority, signal }),
  };
  const run = startRun({
    source: batchSource(plan),
    setup: { ...setup, sampling },
    grouping: { size: batch.request.samples, attempts },
    admission: { concurrency, gate, ahead },
    seed: batch.request.seed,
    // What failed is told as failed; whoever asked decides whether to go on.
    maxFailuresInRow: Infinity,
    folder,
    redeliver: true,
    signal: batch.stop.signal,
    ...(redactor && { redactor }),
    ...(player && { player }),
    onEpisode,
  });
  for await (const { groupIndex, task, episodes } of run) {
    // One that is handed out again was delivered before the folder could note that it was taken.
    if (batch.delivered.has(groupIndex) || batch.state === "cancelled") continue;
    const attempts = episodes.map((episode) => ({ type: "played", episode }) as const);
    await play.deliver(groupIndex, { task, attempts });
  }
  await run.result;
}

function batchSource(plan: RunPlan): TaskSource {
  const source = planSource(plan);
  return { ...source, at: (...asked) => drawing(() => source.at(...asked)) };
}

/**
 * Delivers groups from what is on the disk: the whole ones, or all with what is missing given up. One whose task
 * cannot be drawn any more keeps no other from being delivered.
 *
 * @throws BatchProblem for the first of these, when the others are delivered.
 */
async function deliverStored(
  batch: Batch,
  stored: {
    readonly play: BatchPlay;
    readonly plan: RunPlan;
    readonly folder: RunFolder;
    /** Attempts that have ended, each with its task's index. */
    readonly ended: ReadonlyMap<string, number>;
    readonly isGivenUp: boolean;
  },
): Promise<void> {
  const { play, plan, folder, ended, isGivenUp } = stored;
  const { tasks, samples } = batch.request;
  const endedCounts = new Map<number, number>();
  for (const index of ended.values()) endedCounts.set(index, (endedCounts.get(index) ?? 0) + 1);
  let problem: BatchProblem | undefined;
  let chunk: (readonly PlannedEpisode[])[] = [];
  const deliverChunk = async (): Promise<void> => {
    const wanted = chunk.flat().map(({ rolloutId }) => rolloutId);
    const found = await lookingInto(
      folder.readEpisodes(new Set(wanted.filter((id) => ended.has(id)))),
    );
    const episodes = new Map(found.map((episode) => [episode.rolloutId, episode]));
    for (const planned of chunk) {
      const { task, groupIndex } = planned[0]!;
      const attempts = planned.map((one) => storedAttempt(one, episodes.get(one.rolloutId)));
      await play.deliver(groupIndex, { task, attempts });
    }
    chunk = [];
  };
  for (let groupIndex = 0; groupIndex < tasks.length; groupIndex++) {
    if (batch.delivered.has(groupIndex)) continue;
    // Drawing the tasks of a long plan takes seconds.
    if (!isGivenUp && (endedCounts.get(tasks[groupIndex]!) ?? 0) < samples) continue;
    try {
      const planned = drawing(() => groupAt(plan, groupIndex));
      if (!isGivenUp && !planned.every(({ rolloutId }) => ended.has(rolloutId))) continue;
      chunk.push(planned);
    } catch (error) {
      if (!(error instanceof BatchProblem)) throw error;
      problem ??= error;
    }
    if (chunk.length === readTogether) await deliverChunk();
  }
  await deliverChunk();
  if (problem !== undefined) throw problem;
}

/** The attempts of a group. */
function groupAt(plan: RunPlan, groupIndex: number): readonly PlannedEpisode[] {
  const { sampleCount } = plan.scope;
  return Array.from({ length: sampleCount }, (_, index) =>
    plan.at(groupIndex * sampleCount + index),
  );
}

function storedAttempt(
  { rolloutId, sampleIndex, seed }: PlannedEpisode,
  episode: Episode | undefined,
): PlayedAttempt {
  return episode === undefined
    ? { type: "given-up", assignment: { rolloutId, sampleIndex, seed } }
    : { type: "played", episode };
}

/** What `run.json` says of a batch: an ordinary run, which all commands that read runs can read. */
function manifestOf({ request }: Batch, { manifest, setup }: BatchPlay): RunManifest {
  const { split, tasks, samples, seed, sampling, engine } = request;
  const settings = {
    split,
    tasks: tasks.join(","),
    samples,
    seed,
    ...(sampling.temperature !== undefined && { temperature: sampling.temperature }),
    ...(sampling.topP !== undefined && { "top-p": sampling.topP }),
    ...(sampling.topK !== undefined && { "top-k": sampling.topK }),
    ...(sampling.minP !== undefined && { "min-p": sampling.minP }),
  };
  const { settings: shared } = manifest.found as { readonly settings?: object };
  const at = engine === undefined ? {} : { url: [engine] };
  const scope = { split, taskIndexes: tasks, sampleCount: samples, seed };
  return {
    ...manifest,
    configuration: { ...manifest.configuration, ...settings },
    found: {
      ...manifest.found,
      plan: { environment: setup.environment.name, ...scope },
      settings: { ...shared, ...settings, ...at },
    },
  };
}
