import { isObject } from "../values/is-object.ts";
import type { Episode } from "../episode/episode.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { describe } from "../episode/check/foreign-value.ts";
import { UsageError } from "../errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import { requireBranchRecord } from "../values/require-branch-record.ts";
import type { AttemptPlayer } from "./attempt/attempt-player.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import { requireOpenNames } from "./folder/open-names.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import type { RunProgress } from "./run-progress.ts";
import type { StalenessOptions } from "./policy/staleness.ts";
import type { TaskSource } from "./schedule/task-source.ts";
import { groupingCounts } from "./schedule/attempt-counts.ts";

/** The number of attempts at each task, and the groups that are delivered. */
export interface GroupingOptions {
  /** The number of attempts at each task: the group's size. At least 1. */
  readonly size: number;
  /**
   * Over-sampling: the number of attempts that are started at each task, `size` or more. The group is complete as soon
   * as `size` of them are scored; attempts that are still being played are then cancelled. Default `size`.
   */
  readonly started?: number;
  /** The maximum number of plays of an attempt. The failure of the last one is final. At least 1. Default 2. */
  readonly attempts?: number;
  /**
   * Filters groups, for example with `createSpreadFilter()`: returns true to deliver a group, or the reason to leave it out.
   * Groups that are left out stay in the folder. Default: all are delivered.
   */
  readonly keep?: (group: EpisodeGroup) => boolean | string;
  /**
   * Tree sampling: attempts 1, 2, … of a group wait for attempt 0 and branch from it at these turns (0-based, used in
   * rotation; at the last turn if attempt 0 has fewer). The shared turns are trained only in the row of attempt 0.
   * The environment and the user must be repeatable. Default: every attempt plays from its first turn.
   */
  readonly branchAt?: readonly number[];
}

/** Limits on the number of episodes that are played at the same time. */
export interface AdmissionOptions {
  /** The maximum number of concurrent episodes. At least 1. */
  readonly concurrency: number;
  /** Admits each attempt, oldest groups first. Default: every attempt is admitted immediately. */
  readonly gate?: AdmissionGate;
  /** The number of groups waiting to be taken at which no further group is started. At least 1. Default unlimited. */
  readonly ahead?: number;
}

/** Admits attempts, a limited number at a time. */
export interface AdmissionGate {
  /**
   * Waits for a place; lower priorities first. The signal aborts when the run stops or is interrupted. The run does not
   * wait any longer then, and gives a place that comes later back immediately.
   *
   * @returns a function that gives the place back.
   */
  admit(options: { readonly priority: number; readonly signal: AbortSignal }): Promise<() => void>;
}

/** The tasks, the setup and the limits of a run. */
export interface StartRunOptions {
  readonly source: TaskSource;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  readonly grouping: GroupingOptions;
  readonly admission: AdmissionOptions;
  /** The maximum age of groups. Default: groups of any age are delivered. */
  readonly staleness?: StalenessOptions;
  /** The folder to which the run is written, opened for this start. Default: the run is neither written nor resumed. */
  readonly folder?: RunFolder;
  /** Plays the run's attempts. Default: this process. */
  readonly player?: AttemptPlayer;
  /** The seed of the run's episodes. Default 0. */
  readonly seed?: number;
  /**
   * The number of failed episodes in a row at which the run stops. Each failure of the engine counts; other failures
   * count once a group, because the group's task may cause them. The iteration then ends without an error, and
   * `result.end` is `too-many-failures`. At least 1; `Infinity` for never. Default 20.
   */
  readonly maxFailuresInRow?: number;
  /** Stops the run when it aborts. The next start resumes the episodes that were being played. */
  readonly signal?: AbortSignal;
  /**
   * Removes secrets from the inputs of episodes and from all output. Sampled ids stay as they are, and so do the names
   * of rollouts, groups, tasks, environment and split.
   */
  readonly redactor?: Redactor;
  /**
   * True to deliver complete groups of earlier starts that were not taken. This start then records which groups are
   * taken: a group counts as taken when the next one is requested. A group that was taken is not delivered again, even
   * if one of its attempts is played again (`retryFailed`); that attempt is only written. Default false.
   */
  readonly redeliver?: boolean;
  /** Called when an episode starts or ends. If it throws or rejects, the run ends (see `onEpisode`). */
  readonly onProgress?: (progress: RunProgress) => void;
  /**
   * Called with each episode that this start finishes, after it was written. If it throws, the run ends with a
   * UsageError that names it. The run does not wait for an async function: its rejection ends the run too, and the end
   * of the run waits for it, at most ten seconds.
   */
  readonly onEpisode?: (episode: Episode) => void;
  /**
   * False if nothing reads the messages, turns and rows of an episode after `onEpisode` has returned. The memory of
   * episodes from other processes is then reused immediately. Default true.
   */
  readonly keepsEpisodes?: boolean;
}

/**
 * Checks the options of a run.
 *
 * @throws UsageError if a part is missing, a number is out of range, branches are impossible or differ from those of
 *   the folder's episodes, or the environment's name contains a known secret.
 */
export function checkRunOptions(options: StartRunOptions): void {
  requireParts(options);
  const { admission, folder, grouping, redactor, setup } = options;
  requireOpenNames(setup.environment, redactor);
  const { attempts = 2, branchAt = [] } = grouping;
  const { size, started } = groupingCounts(grouping);
  requireBranching(branchAt, setup);
  const { ahead = Infinity, concurrency } = admission;
  requireCounts({ size, started, attempts, concurrency });
  const { maxFailuresInRow = Infinity } = options;
  requireCounts({ ahead, maxFailuresInRow }, { orInfinity: true });
  const { seed = 0 } = options;
  if (!Number.isSafeInteger(seed)) {
    throw new UsageError(`Cannot start a run: seed is ${seed}, expected a whole number`);
  }
  if (started < size) {
    throw new UsageError(
      `Cannot start ${started} attempts in groups of ${size}: expected at least ${size}`,
    );
  }
  if (branchAt.length > 0 && folder !== undefined) requireBranchRecord(folder.record);
  if (folder !== undefined) requireSameGrouping({ size, started, branchAt }, folder);
}

/** Checks that no part is missing, because a JavaScript program may leave one out. */
function requireParts({ admission, grouping, player, setup, source }: StartRunOptions): void {
  const needed: Record<string, { readonly part: unknown; readonly method?: string }> = {
    source: { part: source, method: "at" },
    setup: { part: setup },
    grouping: { part: grouping },
    admission: { part: admission },
    ...(player !== undefined && { player: { part: player, method: "play" } }),
  };
  for (const [name, { part, method }] of Object.entries(needed)) {
    // An array has an `at()` too, but is not a source.
    const given = isObject(part) ? part : undefined;
    if (given !== undefined && (method === undefined || typeof given[method] === "function"))
      continue;
    const expected = method === undefined ? "an object" : `an object with ${method}()`;
    throw new UsageError(`Cannot start a run: ${name} is ${describe(part)}, expected ${expected}`);
  }
}

function requireBranching(
  branchAt: readonly number[],
  { agent, environment, play, user }: StartRunOptions["setup"],
): void {
  if (branchAt.length === 0) return;
  for (const turnIndex of branchAt) {
    if (Number.isSafeInteger(turnIndex) && turnIndex >= 0) continue;
    throw new UsageError(
      `Cannot branch at turn ${turnIndex}: expected a whole number of at least 0`,
    );
  }
  if (play !== undefined) {
    throw new UsageError(
      `Cannot branch: the agent ${agent.strategy} keeps its conversations itself, and nothing brings ` +
        "it back to a turn",
    );
  }
  if (environment.repeatable === true && user.repeatable === true) return;
  throw new UsageError(
    `Cannot branch: the environment ${environment.name} and the user ${user.strategy} must be ` +
      "repeatable, so that their part of the conversation can be brought back (see `repeatable`)",
  );
}

/**
 * Checks that this start groups attempts as the folder's episodes were grouped. Seeds and rollout indexes are computed
 * from these numbers, and the numbers decide which failures are played again.
 */
function requireSameGrouping(
  { size, started, branchAt }: Required<Pick<GroupingOptions, "size" | "started" | "branchAt">>,
  { dir, finished, grouping }: RunFolder,
): void {
  if (finished.length === 0) return;
  const compared = [
    ["size", grouping.size, size],
    ["started", grouping.begun, started],
    ["branchAt", grouping.branchAt, branchAt],
  ] as const;
  for (const [name, recorded, requested] of compared) {
    const [before, now] = [recorded ?? requested, requested].map((value) => JSON.stringify(value));
    if (before === now) continue;
    throw new UsageError(
      `Cannot continue in ${dir}: its episodes were played with ${name} ${before}, and this start has ` +
        `${now}; start with the same or choose another folder`,
    );
  }
}

function requireCounts(
  counts: Readonly<Record<string, number>>,
  { orInfinity = false }: { readonly orInfinity?: boolean } = {},
): void {
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= 1) continue;
    if (orInfinity && value === Infinity) continue;
    throw new UsageError(
      `Cannot start a run: ${name} is ${value}, expected a number of at least 1`,
    );
  }
}
