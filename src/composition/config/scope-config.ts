import { isPythonEnvironment } from "../../environment/python/python-name.ts";
import { UsageError } from "../../errors.ts";
import { parseJsonText } from "../../json/parse-json.ts";
import { isObject } from "../../values/is-object.ts";
import { isModulePath, readEnvironmentName } from "../environment/environment-names.ts";
import { count, requireSetting, text, type Setting, type SettingValues } from "./setting.ts";

/** The settings of the environment, the tasks and the groups. */
export const scopeSettings = [
  {
    name: "env",
    kind: text,
    value: "name",
    help: "environment: a name from `env list`, a module (./lamps.js), Python (./desk.py) or gem:NAME",
  },
  {
    name: "env-args",
    kind: text,
    value: "json",
    help: "arguments of an environment in Python: a JSON object",
  },
  {
    name: "python",
    kind: text,
    value: "path",
    help: "interpreter of an environment in Python (default: .venv, active environment, python3)",
    operational: true,
  },
  {
    name: "env-processes",
    kind: count(1),
    value: "n",
    help: "processes of an environment in Python",
    default: 1,
    operational: true,
  },
  {
    name: "data",
    kind: text,
    value: "dir",
    help: "the environment's data: a τ-bench bundle folder",
    operational: true,
  },
  {
    name: "split",
    kind: text,
    help: "split of the environment's tasks (default: train, or test if there is no train)",
  },
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

/** The environment, by name or module, and the folder of its data. */
export interface EnvironmentConfig {
  /**
   * A name from `env list`, the path of a module (`./lamps.js`) or of a Python file (`./lamps.py`), or an environment
   * of a Python library (`gem:NAME`).
   */
  readonly name: string;
  /** The folder of a τ-bench bundle. Absent: the usual places are searched. */
  readonly dataDir?: string;
  /** Arguments of an environment in Python. JSON-able. */
  readonly args?: Readonly<Record<string, unknown>>;
  /** The interpreter of an environment in Python. */
  readonly python?: string;
  /** The number of processes of an environment in Python. Default 1. */
  readonly processes?: number;
}

/** The tasks to play, and the number of attempts at each. */
export interface ScopeConfig {
  /** The split to play. Absent: `train`, otherwise `test`, otherwise the environment's first split. */
  readonly split?: string;
  /** `all`, or indexes and rising ranges such as `0-31,40`. */
  readonly tasks: string;
  /** The number of episodes per task: the group's size. */
  readonly sampleCount: number;
  readonly seed: number;
  /** The configuration of epochs. Absent: each task is played once, in order. */
  readonly epochs?: EpochsConfig;
  /**
   * The turns at which the other attempts branch from the first one. Absent: all attempts play from
   * their first turn.
   */
  readonly branchAt?: readonly number[];
}

/** Epochs over the tasks, each in its own order that the seed determines. */
export interface EpochsConfig {
  /** The number of epochs; `Infinity` for a run without an end. */
  readonly count: number;
  /** The number of groups after which the run ends, even if epochs are left. */
  readonly mostGroups?: number;
}

type ScopeValues = SettingValues<(typeof scopeSettings)[number]>;

/**
 * Reads the environment's settings.
 *
 * @throws UsageError if no environment is named, if the name is unknown, or if a setting is for another kind of
 *   environment.
 */
export function readEnvironmentConfig(values: ScopeValues): EnvironmentConfig {
  const { env, data, python, "env-args": args, "env-processes": processes } = values;
  const name = requireSetting(env, "env", "the environment to play (see `env list`)");
  if (isPythonEnvironment(name)) {
    return {
      name,
      ...(args !== undefined && { args: readArgs(args) }),
      ...(python !== undefined && { python }),
      ...(processes > 1 && { processes }),
    };
  }
  const wrong = Object.entries({ "env-args": args, python }).find(
    ([, value]) => value !== undefined,
  );
  if (wrong !== undefined || processes > 1) {
    throw new UsageError(
      `Cannot use --${wrong?.[0] ?? "env-processes"} with environment ${name}: it is for environments in Python, ` +
        "such as ./desk.py",
    );
  }
  if (!isModulePath(name)) readEnvironmentName(name);
  return { name, ...(data !== undefined && { dataDir: data }) };
}

function readArgs(text: string): Readonly<Record<string, unknown>> {
  const args = parseJsonText(text);
  if (isObject(args)) return args;
  throw new UsageError(
    `Cannot use --env-args ${text}: expected a JSON object such as {"size": 100}`,
  );
}

/**
 * Reads the tasks to play. Does not check that the environment has them.
 *
 * @throws UsageError if `epochs` is not a number, or if `groups` is set without `epochs`.
 */
export function readScopeConfig(values: ScopeValues): ScopeConfig {
  const { split, tasks, samples, seed, epochs, groups } = values;
  const branchAt = readBranchAt(values);
  const scope = {
    ...(split !== undefined && { split }),
    tasks,
    sampleCount: samples,
    seed,
    ...(branchAt && { branchAt }),
  };
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
