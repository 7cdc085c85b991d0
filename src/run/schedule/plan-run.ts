import type { Environment } from "../../environment/environment.ts";
import type { EpisodeAssignment } from "../../episode/episode-setup.ts";
import { UsageError, describeError } from "../../errors.ts";
import type { Task } from "../../task.ts";

/** One attempt of a plan. */
export interface PlannedEpisode extends EpisodeAssignment {
  /** The index of the attempt's task in the plan, from 0. */
  readonly groupIndex: number;
  /** The index of the attempt in the plan, from 0. */
  readonly index: number;
}

/** The tasks of a run, and the number of attempts at each. */
export interface RunScope {
  readonly split: string;
  /** The 0-based indexes of the tasks, in the order in which they are played. */
  readonly taskIndexes: readonly number[];
  /** The number of attempts at each task: the group's size. */
  readonly sampleCount: number;
  readonly seed: number;
}

/** The plan in `run.json`, from which the run's episodes are known. JSON-able. */
export interface PlanRecord extends RunScope {
  /** The environment's name. */
  readonly environment: string;
  /** The id of the only group, for forks; absent if each group has its task's id. */
  readonly groupId?: string;
}

/**
 * The attempts of a run, task by task, so that a group shares the engine's prefix cache. A task is drawn from the
 * environment when it is needed. Drawing many thousands takes seconds, so a caller that iterates should let other work
 * run in between.
 */
export interface RunPlan extends Iterable<PlannedEpisode> {
  readonly scope: RunScope;
  /** The number of attempts. */
  readonly length: number;
  /**
   * Returns the attempt at an index, from 0.
   *
   * @throws UsageError if the environment gives another task than it is asked for.
   */
  at(index: number): PlannedEpisode;
  /** Returns the task index and the sample index of an attempt, without drawing the task. */
  placeAt(index: number): EpisodePlace;
}

/** An attempt without its task. */
export interface EpisodePlace {
  readonly taskIndex: number;
  readonly sampleIndex: number;
}

/**
 * Plans a run.
 *
 * @throws UsageError for an unknown split, a task index out of range or one that is listed twice.
 */
export function planRun(environment: Environment, scope: RunScope): RunPlan {
  const { split, taskIndexes, sampleCount, seed } = scope;
  assertScope(environment, scope);
  let drawn: { readonly groupIndex: number; readonly task: Task } | undefined;
  const taskOf = (groupIndex: number): Task => {
    // The attempts of a group share their task.
    if (drawn?.groupIndex !== groupIndex) {
      drawn = { groupIndex, task: drawTask(environment, split, taskIndexes[groupIndex]!) };
    }
    return drawn.task;
  };
  const length = taskIndexes.length * sampleCount;
  const placeAt = (index: number): EpisodePlace => ({
    taskIndex: taskIndexes[Math.floor(index / sampleCount)]!,
    sampleIndex: index % sampleCount,
  });
  const at = (index: number): PlannedEpisode => {
    const groupIndex = Math.floor(index / sampleCount);
    const { sampleIndex } = placeAt(index);
    const task = taskOf(groupIndex);
    const rolloutId = `${task.id}#${sampleIndex}`;
    const place = { rolloutId, groupId: task.id, sampleIndex, groupIndex, index };
    return { task, ...place, seed: seed + index };
  };
  return {
    scope,
    length,
    at,
    placeAt,
    *[Symbol.iterator]() {
      for (let index = 0; index < length; index++) yield at(index);
    },
  };
}

function assertScope(environment: Environment, { split, taskIndexes }: RunScope): void {
  const size = Object.hasOwn(environment.splits, split) ? environment.splits[split] : undefined;
  if (size === undefined) {
    const known = Object.keys(environment.splits).join(", ");
    throw new UsageError(
      `Cannot find split "${split}" of ${environment.name}: expected one of ${known}`,
    );
  }
  const seen = new Set<number>();
  for (const index of taskIndexes) {
    if (!Number.isInteger(index) || index < 0 || index >= size)
      throw outOfRange(index, split, size);
    if (seen.has(index))
      throw new UsageError(`Cannot play task ${index} of "${split}": it is listed twice`);
    seen.add(index);
  }
}

/**
 * Draws a task from a caller's environment and checks it.
 *
 * @throws UsageError if the environment gives no task, or another one.
 */
export function drawTask(environment: Environment, split: string, index: number): Task {
  const place = `Cannot play ${environment.name}: its task ${index} of "${split}"`;
  let task: Task | undefined;
  try {
    task = environment.task(split, index) as Task | undefined;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${place} cannot be drawn: ${describeError(error)}`, { cause: error });
  }
  if (typeof task !== "object" || task === null) {
    const hint = task === undefined ? "nothing (a forgotten return?)" : String(task);
    throw new UsageError(`${place} is ${hint}, expected a task with an id`);
  }
  if (typeof task.id !== "string") throw new UsageError(`${place} has no id, expected a text`);
  assertTask(environment, task, { split, index });
  return task;
}

/** Checks the index of a task, because finished episodes are found by it. */
function assertTask(
  environment: Environment,
  task: Task,
  requested: { readonly split: string; readonly index: number },
): void {
  if (task.split === requested.split && task.index === requested.index) return;
  throw new UsageError(
    `Cannot play ${environment.name}: its task ${requested.index} of "${requested.split}" says that it is ` +
      `task ${task.index} of "${task.split}"`,
  );
}

function outOfRange(index: number, split: string, size: number): UsageError {
  const [tasks, expected] = size === 1 ? ["1 task", "0"] : [`${size} tasks`, `0 to ${size - 1}`];
  return new UsageError(
    `Cannot play task ${index}: split "${split}" has ${tasks}, expected ${expected}`,
  );
}

/**
 * Parses task indexes as on the command line: `all`, or numbers and ascending ranges such as `0-31,40`. Repeated
 * indexes count once.
 *
 * @throws UsageError that names the part that cannot be parsed or is out of range.
 */
export function parseTaskIndexes(
  text: string,
  { split, size }: { split: string; size: number },
): readonly number[] {
  if (text === "all") return Array.from({ length: size }, (_, index) => index);
  const indexes = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    if (match === null) {
      throw new UsageError(
        `Cannot read tasks "${text}": "${part}" is neither a number nor a range such as 0-31, nor "all"`,
      );
    }
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (last < first) {
      throw new UsageError(`Cannot read tasks "${text}": the range ${part.trim()} does not rise`);
    }
    if (last >= size) throw outOfRange(last, split, size);
    for (let index = first; index <= last; index++) indexes.add(index);
  }
  return [...indexes];
}
