import { warningOf } from "../episode/gateway-counters.ts";
import type { MetricsServer } from "../metrics/metrics-server.ts";
import type { MetricsSource } from "../metrics/run-metrics.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { RunProgress } from "../run/run-progress.ts";
import type { RunResult } from "../run/run-rollouts.ts";
import { createRun, type Run } from "../composition/create-run.ts";
import type { RunConfig } from "../composition/config/run-config.ts";
import type { TeacherConfig } from "../composition/config/teacher-config.ts";
import type { OpenQueuedRunOptions, QueuedRun } from "../queue/queued-run.ts";
import type { HandOutConfig } from "../queue/queue-settings.ts";
import { findScopeWarning } from "../composition/run-scope.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import type { EpisodesScored, EpisodeTeacher } from "../composition/open-episode-teacher.ts";
import type { openRolloutTeacher as OpenRolloutTeacher } from "./score-as-episodes-end.ts";
import type { RunDisplay } from "./watch-settings.ts";
import { stopOnInterrupt } from "./interrupt.ts";
import { ownCommand } from "./own-command.ts";
import { createProgressLine, describeNews } from "./progress-line.ts";
import { hideSecrets, writeError, writeOut } from "./write-out.ts";

/** A finished run with its environment and plan. */
export interface PlayedRun extends Pick<Run, "environment" | "plan"> {
  readonly result: RunResult;
  readonly folder: RunFolder;
  /** The result of the teacher that scored the episodes as they ended. Absent without a teacher. */
  readonly teacher?: EpisodesScored;
}

/** Further parts of a played run. */
export interface RunHelpers {
  /** Workers that play the attempts. */
  readonly handOut?: HandOutConfig | undefined;
  /** A teacher that scores the episodes as they end. */
  readonly teacher?: TeacherConfig | undefined;
  /** The lowest reward of a success, for the viewer. Default: the environment's own verdict, or the reward 1. */
  readonly successThreshold?: number | undefined;
}

/**
 * Plays the unfinished part of a run, and calls `finish` while the run's folder is still open. Sets
 * the exit status if the run did not finish.
 *
 * @throws UsageError for settings that cannot be used together or with the folder.
 */
export async function playRun(
  config: RunConfig,
  display: RunDisplay,
  finish: (run: PlayedRun) => Promise<void>,
  { handOut, teacher: teacherConfig, successThreshold }: RunHelpers = {},
): Promise<void> {
  hideSecrets(createRunRedactor(config, process.env));
  const signal = stopOnInterrupt();
  await using run = await createRun(config, { signal, command: ownCommand() });
  const note = (text: string): void => {
    if (!display.quiet) writeError(`note: ${text}\n`);
  };
  // Warnings come first, so that people can act on them before the run.
  for (const warning of run.warnings) note(warning);
  const ofScope = findScopeWarning(config.scope, run.plan.scope);
  if (ofScope !== undefined) note(ofScope);
  await using folder = await run.openFolder(note);
  for (const text of folder.notes) note(text);
  await using _viewer = display.view
    ? await openViewer(folder.dir, { successThreshold })
    : undefined;
  await using teacher =
    teacherConfig && (await openTeacher(teacherConfig, folder, { signal, note }));
  const result = await showPlay(run, { folder, display, signal, handOut, teacher });
  const scored = await teacher?.finish();
  if (scored !== undefined) await noteMissing(scored, folder, note);
  const { gateway } = result.progress;
  const warning = gateway && warningOf(gateway);
  if (warning !== undefined) note(warning);
  const { environment, plan } = run;
  await finish({ result, folder, environment, plan, ...(scored && { teacher: scored }) });
  setExitStatus(result);
}

/** Opens the teacher of a run. Loads its code only if there is one. */
async function openTeacher(
  ...given: Parameters<typeof OpenRolloutTeacher>
): Promise<EpisodeTeacher> {
  const { openRolloutTeacher } = await import("./score-as-episodes-end.ts");
  return await openRolloutTeacher(...given);
}

/** Says which rows lack the teacher's columns. */
async function noteMissing(
  scored: EpisodesScored,
  folder: RunFolder,
  note: (text: string) => void,
): Promise<void> {
  const { describeMissing } = await import("./score-as-episodes-end.ts");
  const text = describeMissing(scored, folder);
  if (text !== undefined) note(text);
}

/** Sets the exit status if a run did not finish, or if all of its episodes failed. */
export function setExitStatus({ end, progress }: RunResult): void {
  if (end === "interrupted") process.exitCode = 130;
  const { scored, outcomes } = progress;
  const isAllFailed = scored === 0 && outcomes.failed > 0;
  if (end === "too-many-failures" || isAllFailed) process.exitCode = 1;
}

/** Opens the player that sends attempts to workers. Loads its code only if there are workers. */
async function openWorkerPlayer(
  run: Run,
  handOut: HandOutConfig,
  options: OpenQueuedRunOptions,
): Promise<QueuedRun> {
  const { openPlayers } = await import("../queue/open-queued-run.ts");
  const queued = await openPlayers(run, handOut, options);
  hideSecrets(queued.redactor);
  return queued;
}

/**
 * Shows the run's folder in the browser. Prints to standard error, because standard output is for
 * results.
 */
async function openViewer(
  dir: string,
  { successThreshold }: Pick<RunHelpers, "successThreshold">,
): Promise<AsyncDisposable> {
  const { startRunViewer } = await import("../viewer/start-run-viewer.ts");
  const viewer = await startRunViewer([dir], {
    ...(successThreshold !== undefined && { successThreshold }),
  });
  writeError(`view the run while it plays: ${viewer.url}\n`);
  return viewer;
}

/** The sources of metrics that exist so far. */
interface Watched {
  progress: RunProgress;
  admission: NonNullable<MetricsSource["admission"]>;
}

async function openMetrics(
  { metricsPort: port }: RunDisplay,
  watched: Partial<Watched>,
): Promise<MetricsServer | undefined> {
  if (port === undefined) return undefined;
  const { startMetricsServer } = await import("../metrics/metrics-server.ts");
  const source = { progress: () => watched.progress, admission: () => watched.admission?.() };
  const server = await startMetricsServer(source, { port });
  writeError(`metrics: ${server.url}\n`);
  return server;
}

async function showPlay(
  run: Run,
  options: {
    readonly folder: RunFolder;
    readonly display: RunDisplay;
    readonly signal: AbortSignal;
    readonly handOut: HandOutConfig | undefined;
    readonly teacher: EpisodeTeacher | undefined;
  },
): Promise<RunResult> {
  const { folder, display, signal, handOut, teacher } = options;
  const { now } = run.setup;
  const busyShare = () => performance.eventLoopUtilization().utilization;
  const line = createProgressLine({ stream: process.stderr, write: writeError, now, busyShare });
  if (folder.finished.length > 0 && !display.quiet) {
    writeError(`resuming ${folder.name}: ${folder.finished.length} episodes are done\n`);
  }
  const watched: Partial<Watched> = {};
  await using metrics = await openMetrics(display, watched);
  const say = (text: string): void => {
    if (!display.quiet) line.say(text);
  };
  await using queued = handOut && (await openWorkerPlayer(run, handOut, { folder, say, signal }));
  const result = await run.play(folder, {
    signal,
    ...(queued && { player: queued.player, concurrency: queued.concurrency }),
    keepsEpisodes: false,
    onAdmission: (admission) => Object.assign(watched, { admission }),
    onProgress: (progress) => {
      watched.progress = progress;
      if (!display.quiet) line.update(progress);
    },
    onEngine: (news) => {
      if (display.json) void writeOut(`${JSON.stringify(news)}\n`);
      if (!display.quiet) line.say(describeNews(news));
    },
    onEpisode: (episode) => {
      metrics?.observe(episode);
      teacher?.wake();
      if (!display.json) return;
      const { rolloutId, outcome, stopReason, reward, failure, troubles } = episode;
      const event = { type: "episode", rolloutId, outcome, stopReason, reward, failure, troubles };
      void writeOut(`${JSON.stringify(event)}\n`);
    },
  });
  if (result.end === "finished") queued?.finished?.();
  if (!display.quiet) line.end();
  return result;
}
