import { setMaxListeners } from "node:events";
import type { Episode } from "../episode/episode.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { playEpisode } from "../episode/play-episode.ts";
import { UsageError, describeStack, type RolloutError } from "../errors.ts";
import type { Redactor } from "../internal/redactor.ts";
import { takeTurn } from "../internal/take-turn.ts";
import type { FinishedEpisode } from "./episode-row.ts";
import type { EpisodePlace, PlannedEpisode, RunPlan } from "./plan-run.ts";
import type { SlimeAttempt, SlimeSummary } from "../sink/slime-file.ts";
import type { RunFolder } from "./run-folder.ts";
import { RunTally, type RunProgress } from "./run-progress.ts";

/** How a run is carried out. */
export interface RunOptions {
  readonly plan: RunPlan;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  readonly folder: RunFolder;
  /** Episodes played at once. At least 1. */
  readonly concurrency: number;
  /** How often an episode is played before its failure is final. At least 1. */
  readonly attempts: number;
  /** The run stops when this many episodes have failed in a row: something is down for good. */
  readonly maxFailuresInRow: number;
  readonly signal: AbortSignal;
  /** Takes secrets out of all that is written, told and returned of an episode, ids excepted. */
  readonly redactor?: Redactor;
  /** Told whenever an episode starts or ends. */
  readonly onProgress?: (progress: RunProgress) => void;
  /** Told of each finished episode of this start, after it is on the disk. */
  readonly onEpisode?: (episode: Episode) => void;
}

/** How a run ended. */
export interface RunResult {
  readonly progress: RunProgress;
  /** `finished`: every planned episode is on the disk. The others can be resumed. */
  readonly end: "finished" | "interrupted" | "too-many-failures";
  /** What the slime file holds; absent where none is asked for. */
  readonly slime?: SlimeSummary;
}

/**
 * Plays the episodes of a plan that are not finished yet, a bounded number at once, and journals
 * each as it ends. An abort leaves the unfinished ones for the next start.
 *
 * @throws UsageError where the disk refuses an episode, after the others were stopped; what was
 *   finished before is kept.
 * @throws whatever `playEpisode()` throws on our own bugs, after the other episodes were stopped.
 */
export async function runRollouts(options: RunOptions): Promise<RunResult> {
  const { signal } = options;
  const stop = new AbortController();
  // Each running episode listens to it.
  setMaxListeners(0, stop.signal);
  const forward = (): void => stop.abort(signal.reason);
  if (signal.aborted) forward();
  signal.addEventListener("abort", forward, { once: true });
  try {
    return await playPlan(options, stop);
  } finally {
    signal.removeEventListener("abort", forward);
  }
}

async function playPlan(options: RunOptions, stop: AbortController): Promise<RunResult> {
  const { plan, folder, setup } = options;
  const tally = new RunTally({ planned: plan.length, now: setup.now });
  const state: WorkerState = {
    ...{ options, tally, stop },
    ...findWaiting(plan, folder.finished, (row) => tally.episodeResumed(row)),
    begunCount: 0,
    failuresInRow: 0,
    crash: undefined,
  };
  if (state.waiting.length > 0) await folder.takeBackEnd();
  await folder.writeEvent(startEvent(state));
  const workerCount = Math.min(options.concurrency, state.waiting.length);
  await Promise.all(Array.from({ length: workerCount }, () => work(state)));
  if (state.crash !== undefined) throw state.crash.error;
  const end = endOf(state);
  const progress = tally.progress();
  if (end === "finished") await folder.sortSamples(state.rolloutIds);
  const slime = await folder.writeSlime(slimeAttempts(state));
  await folder.writeEvent({ type: "run-ended", atMs: setup.now(), end });
  await folder.writeSummary({ end, ...progress, ...(slime && { slime }) });
  return { progress, end, ...(slime && { slime }) };
}

/** Where the attempts stand in slime's batch; one that was not begun has no id, as it has no rows. */
function slimeAttempts({ options, rolloutIds }: WorkerState): readonly SlimeAttempt[] {
  const { sampleCount } = options.plan.scope;
  return rolloutIds.map((rolloutId, index) => ({
    ...{ rolloutId, index },
    groupIndex: Math.floor(index / sampleCount),
  }));
}

/** Says what is played, so that the folder can be used even if its `run.json` is lost. */
function startEvent({ options, waiting }: WorkerState) {
  const { plan, folder, setup } = options;
  const { found: _found, ...manifest } = folder.manifest;
  const resumed = plan.length - waiting.length;
  return { type: "run-started", atMs: setup.now(), planned: plan.length, resumed, manifest };
}

/** Tells the finished episodes of a plan from the others without drawing a task. */
function findWaiting(
  plan: RunPlan,
  finished: readonly FinishedEpisode[],
  onFinished: (row: FinishedEpisode) => void,
): Pick<WorkerState, "waiting" | "rolloutIds" | "knownIds"> {
  const keyOf = ({ taskIndex, sampleIndex }: EpisodePlace): string => `${taskIndex}#${sampleIndex}`;
  const rows = new Map(finished.map((row) => [keyOf(row), row]));
  const waiting: number[] = [];
  const rolloutIds: string[] = [];
  for (let index = 0; index < plan.length; index++) {
    const row = rows.get(keyOf(plan.placeAt(index)));
    if (row === undefined) {
      waiting.push(index);
      rolloutIds.push("");
    } else {
      rolloutIds.push(row.rolloutId);
      onFinished(row);
    }
  }
  return { waiting, rolloutIds, knownIds: new Set(rolloutIds.filter((id) => id !== "")) };
}

interface WorkerState {
  readonly options: RunOptions;
  readonly tally: RunTally;
  readonly stop: AbortController;
  /** Places in the plan that are to be played. */
  readonly waiting: readonly number[];
  /** How many of these were begun. */
  begunCount: number;
  /** `rolloutIds[i]` belongs to place i of the plan; empty until its task is drawn. */
  readonly rolloutIds: string[];
  /** All of them that are known. */
  readonly knownIds: Set<string>;
  failuresInRow: number;
  crash: { readonly error: unknown } | undefined;
}

function endOf({ options, failuresInRow, tally, stop }: WorkerState): RunResult["end"] {
  const { planned, finished } = tally.progress();
  if (finished === planned) return "finished";
  const failed = failuresInRow >= options.maxFailuresInRow;
  return failed && stop.signal.aborted && !options.signal.aborted
    ? "too-many-failures"
    : "interrupted";
}

/** Plays one episode after the other until none is waiting or the run stops. */
async function work(state: WorkerState): Promise<void> {
  const { stop, waiting, options } = state;
  while (!stop.signal.aborted) {
    const index = waiting[state.begunCount++];
    if (index === undefined) return;
    try {
      await takeTurn();
      const planned = options.plan.at(index);
      noteId(state, index, planned);
      await playAndRecord(state, planned);
    } catch (error) {
      if (stop.signal.aborted && error === stop.signal.reason) return;
      state.crash ??= { error };
      stop.abort(error);
      return;
    }
  }
}

/** Rows are known by their rollout's id, so no two may share one. */
function noteId(
  { knownIds, rolloutIds }: WorkerState,
  index: number,
  planned: PlannedEpisode,
): void {
  const { rolloutId, task } = planned;
  if (knownIds.has(rolloutId)) {
    throw new UsageError(
      `Cannot play ${task.environment}: task ${task.index} has the id of another one, ${task.id}`,
    );
  }
  knownIds.add(rolloutId);
  rolloutIds[index] = rolloutId;
}

async function playAndRecord(state: WorkerState, planned: PlannedEpisode): Promise<void> {
  const { options, tally, stop } = state;
  const { folder, setup } = options;
  tally.episodeStarted();
  let isCounted = false;
  try {
    const episode = await playWithRetries(state, planned);
    const episodeHash = await folder.writeEpisode(episode);
    tally.episodeFinished(episode);
    isCounted = true;
    const event = episodeEvent("episode-finished", episode, setup.now());
    await folder.writeEvent({ ...event, episodeHash });
    state.failuresInRow = episode.outcome === "failed" ? state.failuresInRow + 1 : 0;
    if (state.failuresInRow >= options.maxFailuresInRow) {
      stop.abort(new DOMException("too many episodes failed in a row", "AbortError"));
    }
    options.onEpisode?.(episode);
  } finally {
    if (!isCounted) tally.episodeLeft();
    options.onProgress?.(tally.progress());
  }
}

async function playWithRetries(state: WorkerState, planned: PlannedEpisode): Promise<Episode> {
  const { options, tally, stop } = state;
  const troubles: RolloutError[] = [];
  const setup: EpisodeSetup = {
    ...options.setup,
    onTurn: (turn) => tally.turnEnded(turn.sampledTokenCount),
    onTrouble: (trouble) => troubles.push(trouble),
  };
  for (let attempt = 1; ; attempt++) {
    options.onProgress?.(tally.progress());
    const episode = await redact(
      await playEpisode({ ...planned, attempt }, setup, { signal: stop.signal }),
      options.redactor,
    );
    const { rolloutId } = planned;
    for (const trouble of troubles.splice(0)) {
      options.redactor?.error(trouble);
      const { code, message } = trouble;
      const stack = describeStack(trouble);
      const event = { type: "trouble", atMs: setup.now(), rolloutId, attempt };
      await options.folder.writeEvent({ ...event, code, message, stack });
    }
    if (episode.outcome !== "failed" || attempt >= options.attempts) return episode;
    tally.attemptRetried();
    const event = episodeEvent("attempt-failed", episode, setup.now());
    await options.folder.writeEvent({ ...event, attempt });
  }
}

/** Whatever the text of an episode comes from, it passes here before anybody else sees it. */
async function redact(episode: Episode, redactor: Redactor | undefined): Promise<Episode> {
  if (redactor === undefined) return episode;
  const { segments, ...story } = episode;
  return { ...(await redactor.cleanInTurns(story)), segments };
}

function episodeEvent(type: string, episode: Episode, atMs: number) {
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
