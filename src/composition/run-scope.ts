import { expectedName } from "../../packages/python-values/src/support/nearest-name.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { parseTaskIndexes, type RunScope } from "../run/schedule/plan-run.ts";
import { countOf } from "../text/count-of.ts";
import type { ScopeConfig } from "./config/scope-config.ts";

/**
 * Returns the tasks of an environment that a configuration selects, and the number of attempts at
 * each.
 *
 * @throws UsageError for a split or tasks that the environment does not have.
 */
export function toRunScope(
  { split: named, tasks, sampleCount, seed }: ScopeConfig,
  environment: Environment,
): RunScope {
  const split = named ?? defaultSplit(environment);
  const size = Object.hasOwn(environment.splits, split) ? environment.splits[split] : undefined;
  if (size === undefined) {
    const known = expectedName(split, Object.keys(environment.splits));
    throw new UsageError(
      `Cannot find split "${split}" of ${environment.name}: ${known}; name one by the setting split`,
    );
  }
  const taskIndexes = parseTaskIndexes(tasks, { split, size });
  return { split, taskIndexes, sampleCount, seed };
}

/** Returns the split that is played if none is named: `train`, or `test`, or the first one. */
export function defaultSplit({ splits }: Pick<Environment, "splits">): string {
  const names = Object.keys(splits);
  return ["train", "test"].find((name) => names.includes(name)) ?? names[0] ?? "train";
}

/** The number of tasks from which a run of all tasks prints a warning first. */
const manyTasks = 1_000;

/** Returns a warning for people if a run plays all tasks of a large split because no setting names tasks. */
export function findScopeWarning(
  { tasks, epochs }: Pick<ScopeConfig, "tasks" | "epochs">,
  { split, taskIndexes: { length } }: Pick<RunScope, "split" | "taskIndexes">,
): string | undefined {
  if (tasks !== "all" || epochs !== undefined || length < manyTasks) return undefined;
  return `plays all ${countOf(length, "task")} of ${split}: --tasks 0-31 plays the first 32`;
}
