import type { EpisodeSetup } from "../episode/episode-setup.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Episode } from "../episode/episode.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { PlannedEpisode, RunPlan } from "../run/schedule/plan-run.ts";
import { RunFolder, type RunFolderOptions, type RunManifest } from "../run/folder/run-folder.ts";
import { startRun } from "../run/start-run.ts";
import type { AdmissionGate, StartRunOptions } from "../run/start-run-options.ts";
import { createPlanSource, type TaskSource } from "../run/schedule/task-source.ts";
import { BatchProblem, drawing, lookingInto, planAccepted } from "./batch-problem.ts";
import type { PlayedAttempt, PlayedGroup } from "./batch-taker.ts";
import { planBatch, type Batch } from "./batch.ts";

/** The inputs of `playBatch()` besides the batch. */
interface BatchPlay {
  /** The batch's folder. */
  readonly dir: string;
  readonly setup: StartRunOptions["setup"];
  /** The part of `run.json` that all batches share. */
  readonly manifest: RunManifest;
  readonly folder: Omit<RunFolderOptions, "retryFailed">;
  /** The gate that all batches share. It limits the attempts that play at the same time. */
  readonly places: AdmissionGate;
  readonly concurrency: number;
  /** The maximum number of plays of an attempt. The failure of the last one is final. */
  readonly attempts: number;
  readonly redactor?: Redactor;
  /** The player of attempts. Default: this process. */
  readonly player?: AttemptPlayer;
  readonly deliver: (groupIndex: number, group: PlayedGroup) => Promise<void>;
  /** Called with the folder before anything is played. */
  readonly onFolder?: (folder: RunFolder) => void;
  /** Called before a group is started. */
  readonly onGroup?: (groupIndex: number) => void;
}

/** The number of stored groups that are read from the disk at once. */
const readTogether = 16;

/** The number of groups waiting for storage at which no further group starts. */
const ahead = 4;

/**
 * The range of positions in the shared queue that each batch gets. Larger than the number of groups
 * in a batch.
 */
const batchSpan = 65_536;

/**
 * Plays the unfinished part of a batch and delivers each group as it ends, including groups that an earlier start
 * finished but did not deliver. After the deadline, delivers the unfinished groups with cancelled attempts.
 * @returns true if all groups are delivered.
 * @throws BatchProblem, or an error with one as its cause, for a problem of this batch alone.
 */
export async function playBatch(batch: Batch, play: BatchPlay): Promise<boolean> {
  const plan = planAccepted(() => planBatch(play.setup.environment, batch.request));
  const options = { ...play.folder, retryFailed: false };
  await using folder = await lookingInto(
    RunFolder.open(play.dir, manifestOf(batch, play), options),
  );
  play.onFolder?.(folder);
  const ended = new Map(folder.finished.map(({ rolloutId, taskIndex }) => [rolloutId, taskIndex]));
  // A batch after its deadline is delivered below, with its missing attempts.
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
    source: batchSource(plan, play.onGroup),
    setup: { ...setup, sampling },
    grouping: { size: batch.request.samples, attempts },
    admission: { concurrency, gate, ahead },
    seed: batch.request.seed,
    // Failed attempts are delivered as failed. The caller decides how to continue.
    maxFailuresInRow: Infinity,
    folder,
    redeliver: true,
    signal: batch.stop.signal,
    ...(redactor && { redactor }),
    ...(player && { player }),
    onEpisode,
  });
  for await (const { groupIndex, task, episodes } of run) {
    // A crash can come after a delivery but before the folder records it. The run then delivers the
    // group again.
    if (batch.delivered.has(groupIndex) || batch.state === "cancelled") continue;
    const attempts = episodes.map((episode) => ({ type: "played", episode }) as const);
    await play.deliver(groupIndex, { task, attempts });
  }
  await run.result;
}

function batchSource(plan: RunPlan, onGroup: BatchPlay["onGroup"] = () => {}): TaskSource {
  const source = createPlanSource(plan);
  return {
    ...source,
    at: (groupIndex, options) => {
      onGroup(groupIndex);
      return drawing(() => source.at(groupIndex, options));
    },
  };
}

/**
 * Delivers groups from the run's folder: the complete ones, or all of them, with missing attempts as cancelled ones. A
 * group with a task that cannot be made does not delay the others.
 * @throws BatchProblem for the first such group, after the others are delivered.
 */
async function deliverStored(
  batch: Batch,
  stored: {
    readonly play: BatchPlay;
    readonly plan: RunPlan;
    readonly folder: RunFolder;
    /** The finished attempts by rollout id, each with its task's index. */
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
    // Making the tasks of a long plan takes seconds.
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

/** Returns the planned attempts of a group. */
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

/**
 * Returns the `run.json` of a batch. The batch's folder is an ordinary run, so that every command
 * can read it.
 */
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
