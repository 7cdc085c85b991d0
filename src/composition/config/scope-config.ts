import { UsageError } from "../../errors.ts";
import { isModulePath, readEnvironmentName } from "../environment/environment-names.ts";
import { count, requireSetting, text, type Setting, type SettingValues } from "./setting.ts";

/** The settings of the environment, the tasks and the groups. */
export const scopeSettings = [
  {
    name: "env",
    kind: text,
    value: "name",
    help: "environment: a name from `env list`, or a module such as ./lamps.js",
  },
  {
    name: "data",
    kind: text,
    value: "dir",
    help: "the environment's data: a τ-bench bundle folder",
    operational: true,
  },
  { name: "split", kind: text, help: "split of the environment's tasks", default: "test" },
  {
    name: "tasks",
    kind: text,
    value: "list",
    help: "task indexes: all, or such as 0-31,40",
    default: "all",
  },
  {
    name: "samples",
    kind: count(1),
    value: "n",
    help: "episodes per task: the group's size",
    default: 1,
  },
  {
    name: "epochs",
    kind: text,
    value: "n",
    help: "passes over the tasks, each in its own order: a number, or endless (default: one, in order)",
  },
  {
    name: "groups",
    kind: count(1),
    value: "n",
    help: "with --epochs: groups after which the run ends",
    operational: true,
  },
  {
    name: "branch-at",
    kind: text,
    value: "list",
    help: "fork the other attempts at a task from the first one at these turns, such as 2 or 1,3",
  },
  { name: "seed", kind: count(0), value: "n", help: "seed of the run", default: 0 },
] as const satisfies readonly Setting[];

/** The environment, by name or as a module, and the folder of its data. */
export interface EnvironmentConfig {
  /** A name that `env list` shows, or the path of a module such as `./lamps.js`. */
  readonly name: string;
  /** A τ-bench bundle's folder; absent: the places where one is looked for. */
  readonly dataDir?: string;
}

/** The tasks to play, and the number of attempts at each. */
export interface ScopeConfig {
  readonly split: string;
  /** `all`, or indexes and rising ranges such as `0-31,40`. */
  readonly tasks: string;
  /** Episodes per task: the group's size. */
  readonly sampleCount: number;
  readonly seed: number;
  /** Absent: the tasks once, in their order. */
  readonly epochs?: EpochsConfig;
  /**
   * The turns at which the other attempts fork from the first one; absent if all attempts start at the beginning.
   */
  readonly branchAt?: readonly number[];
}

/** Epochs over the tasks, each in its own order that follows from the seed. */
export interface EpochsConfig {
  /** The number of epochs; `Infinity` for a run without an end. */
  readonly count: number;
  /** Groups after which the run is at its end, however many epochs are left. */
  readonly mostGroups?: number;
}

type ScopeValues = SettingValues<(typeof scopeSettings)[number]>;

/**
 * Reads which environment is played.
 *
 * @throws UsageError if no environment is named, or if the name is unknown.
 */
export function readEnvironmentConfig({ env, data }: ScopeValues): EnvironmentConfig {
  const name = requireSetting(env, "env", "the environment to play (see `env list`)");
  if (!isModulePath(name)) readEnvironmentName(name);
  return { name, ...(data !== undefined && { dataDir: data }) };
}

/**
 * Reads the tasks to play. It does not check that the environment has them.
 *
 * @throws UsageError if `epochs` is not a number, or if `groups` is set without `epochs`.
 */
export function readScopeConfig(values: ScopeValues): ScopeConfig {
  const { split, tasks, samples, seed, epochs, groups } = values;
  const branchAt = readBranchAt(values);
  const scope = { split, tasks, sampleCount: samples, seed, ...(branchAt && { branchAt }) };
  if (epochs === undefined) {
    if (groups === undefined) return scope;
    throw new UsageError(
      "Cannot use --groups without --epochs: give --epochs endless, or choose --tasks",
    );
  }
  const mostGroups = groups === undefined ? {} : { mostGroups: groups };
  return { ...scope, epochs: { count: readEpochCount(epochs), ...mostGroups } };
}

function readBranchAt({ "branch-at": list, samples }: ScopeValues): readonly number[] | undefined {
  if (list === undefined) return undefined;
  if (!/^\d{1,9}(,\d{1,9})*$/.test(list)) {
    throw new UsageError(`Cannot use --branch-at ${list}: expected turns from 0, such as 2 or 1,3`);
  }
  if (samples < 2) {
    throw new UsageError(
      `Cannot use --branch-at with ${samples} attempt a task: nothing would branch, give --samples 2 ` +
        "or more",
    );
  }
  return list.split(",").map(Number);
}

function readEpochCount(epochs: string): number {
  if (epochs === "endless") return Infinity;
  const count = Number(epochs);
  if (/^\d+$/.test(epochs) && Number.isSafeInteger(count) && count >= 1) return count;
  throw new UsageError(
    `Cannot use --epochs ${epochs}: expected a whole number of at least 1, or endless`,
  );
}
