import type { Episode } from "../episode/episode.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { describe } from "../episode/check/foreign-value.ts";
import { UsageError } from "../errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import { requireBranchRecord } from "../values/require-branch-record.ts";
import type { AttemptPlayer } from "./schedule/attempt-player.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import { requireOpenNames } from "./folder/open-names.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import type { RunProgress } from "./run-progress.ts";
import type { StalenessOptions } from "./policy/staleness.ts";
import type { TaskSource } from "./schedule/task-source.ts";
import type { RecordedGrouping } from "./folder/episode-events.ts";

/** How attempts are grouped. */
export interface GroupingOptions {
  /** Attempts at each task: the group's size. At least 1. */
  readonly size: number;
  /**
   * Attempts that are begun at each task, `size` or more: the group is whole as soon as `size` of them are
   * scored, and those that are still played then are given up. Default `size`.
   */
  readonly begun?: number;
  /** Plays of an attempt before its failure is final. At least 1. Default 2. */
  readonly attempts?: number;
  /**
   * Which groups are handed out, such as `rewardSpread()`: true, or why not. The others stay in the
   * folder. Default all.
   */
  readonly keep?: (group: EpisodeGroup) => boolean | string;
  /**
   * Tree sampling: attempts 1, 2, … of a group wait for attempt 0 and part from it with these turns
   * (0-based, taken in turn; the last turn where there are fewer). What they share is trained in the row
   * of attempt 0 alone. Takes an environment and a user that are repeatable. Default: all begin anew.
   */
  readonly branchAt?: readonly number[];
}

/** How many episodes are played at once. */
export interface AdmissionOptions {
  /** Episodes at once. At least 1. */
  readonly concurrency: number;
  /** Asked for a place before each attempt, oldest groups first. Default: there is one at once. */
  readonly gate?: AdmissionGate;
  /** Groups that may wait to be taken before no further ones are begun. At least 1. Default unlimited. */
  readonly ahead?: number;
}

/** Lets attempts in, a few at a time. */
export interface AdmissionGate {
  /**
   * Waits for a place; lower priorities first. The signal aborts where the run stops or is interrupted: nobody
   * waits any longer then, and a place that comes later is given back at once.
   *
   * @returns what gives the place back.
   */
  admit(options: { readonly priority: number; readonly signal: AbortSignal }): Promise<() => void>;
}

/** What a run is. */
export interface StartRunOptions {
  readonly source: TaskSource;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  readonly grouping: GroupingOptions;
  readonly admission: AdmissionOptions;
  /** Default: groups of any age are handed out. */
  readonly staleness?: StalenessOptions;
  /**
   * Where the run is written, and goes on after a stop; absent: nothing is written. Each start takes a folder
   * that was opened for it.
   */
  readonly folder?: RunFolder;
  /** Who plays its attempts. Default: this process. */
  readonly player?: AttemptPlayer;
  /** Seeds its episodes. Default 0. */
  readonly seed?: number;
  /**
   * The run stops when this many episodes have failed in a row: something is down for good. Failures of the engine
   * count each; all others of a group count once, for they may be of its task alone. The iteration ends then without
   * an error, and `result.end` is `too-many-failures`. At least 1; `Infinity` for never. Default 20.
   */
  readonly maxFailuresInRow?: number;
  /** Aborted, the run stops at once; what was recorded of its episodes goes on in the next start. */
  readonly signal?: AbortSignal;
  /**
   * Takes secrets out of what comes into an episode, and out of all that is written, told and returned of it;
   * the ids that the policy samples excepted, and the names of rollouts, groups, tasks, environment and split.
   */
  readonly redactor?: Redactor;
  /**
   * Whether groups that earlier starts ended are handed out again, unless it is noted in the folder that
   * they were taken; it is noted then. A group counts as taken when the next one is asked for. One that was
   * taken is not handed out again where an attempt of it is played again, as `retryFailed` has it: that
   * attempt is written to the folder alone. Default false.
   */
  readonly redeliver?: boolean;
  /** Told whenever an episode starts or ends. What it throws or rejects with ends the run (see `onEpisode`). */
  readonly onProgress?: (progress: RunProgress) => void;
  /**
   * Told of each finished episode of this start, after it is on the disk. What it throws ends the run with a
   * UsageError that names it. Where it is an async function the run goes on meanwhile: what that rejects with ends
   * the run in the same way, and the run's end waits for it, ten seconds at most.
   */
  readonly onEpisode?: (episode: Episode) => void;
}

/**
 * @throws UsageError for parts that are none, numbers that are none, for branches that cannot be or are not
 *   those of the folder's episodes, and where a known secret is a part of the environment's name.
 */
export function checkRunOptions(options: StartRunOptions): void {
  requireParts(options);
  const { admission, folder, grouping, redactor, setup } = options;
  requireOpenNames(setup.environment, redactor);
  const { size, begun = size, attempts = 2, branchAt = [] } = grouping;
  requireBranching(branchAt, setup);
  const { ahead = Infinity, concurrency } = admission;
  requireCounts({ size, begun, attempts, concurrency });
  const { maxFailuresInRow = Infinity } = options;
  requireCounts({ ahead, maxFailuresInRow }, { orInfinity: true });
  const { seed = 0 } = options;
  if (!Number.isSafeInteger(seed)) {
    throw new UsageError(`Cannot start a run: seed is ${seed}, expected a whole number`);
  }
  if (begun < size) {
    throw new UsageError(`Cannot begin ${begun} attempts for groups of ${size}: expected as many`);
  }
  if (branchAt.length > 0 && folder !== undefined) requireBranchRecord(folder.record);
  if (folder !== undefined) requireSameGrouping({ size, begun, branchAt }, folder);
}

/** A program that no compiler has read may leave out a part, or give what makes one. */
function requireParts({ admission, grouping, player, setup, source }: StartRunOptions): void {
  const needed: Record<string, { readonly part: unknown; readonly method?: string }> = {
    source: { part: source, method: "at" },
    setup: { part: setup },
    grouping: { part: grouping },
    admission: { part: admission },
    ...(player !== undefined && { player: { part: player, method: "play" } }),
  };
  for (const [name, { part, method }] of Object.entries(needed)) {
    // A list has an `at()`, and is no source.
    const isObject = typeof part === "object" && part !== null && !Array.isArray(part);
    const given = isObject ? (part as Record<string, unknown>) : {};
    if (isObject && (method === undefined || typeof given[method] === "function")) continue;
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
 * The groups of a folder branch alike, those of earlier starts and those that are still to come, and have
 * as many attempts: by that number the run's seeds and places are counted. They need as many that are scored: which
 * failures may be played again, and what is handed out, follows from that.
 */
function requireSameGrouping(
  asked: Required<RecordedGrouping>,
  { dir, finished, grouping }: RunFolder,
): void {
  if (finished.length === 0) return;
  for (const name of ["size", "begun", "branchAt"] as const) {
    const [before, now] = [grouping[name] ?? asked[name], asked[name]].map((value) =>
      JSON.stringify(value),
    );
    if (before === now) continue;
    throw new UsageError(
      `Cannot go on in ${dir}: its episodes were played with ${name} ${before}, and this start has ` +
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
