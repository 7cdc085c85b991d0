import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Environment } from "../../environment/environment.ts";
import type { Episode } from "../../episode/episode.ts";
import { describeError, UsageError } from "../../errors.ts";
import { isAlike } from "../../values/is-alike.ts";
import { isWhollyJson } from "../../json/is-wholly-json.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Task } from "../../task.ts";
import { drawTask } from "../schedule/plan-run.ts";

/** A task as it is written for later starts. JSON-able. */
export interface TaskRecord {
  readonly task: Task;
  /** Present if the task's data cannot be written: a later start draws the task from the environment again. */
  readonly isDrawnAgain?: true;
  /**
   * The task's key (see `taskKey()`). Present if the task contains a secret: neither its data nor its instruction is
   * written then.
   */
  readonly hash?: string;
}

/** The environment of a task, and the secrets that are not written. */
interface TaskPlace {
  readonly environment: Environment;
  /** Finds the secrets that are not written. */
  readonly redactor?: Pick<Redactor, "without"> | undefined;
}

/**
 * Converts a task to its record. A task is written completely if it is plain JSON without secrets.
 *
 * @throws UsageError for any other task that the environment does not draw at the same index.
 */
export function toTaskRecord(task: Task, { environment, redactor }: TaskPlace): TaskRecord {
  const secret = secretIn(task, redactor);
  if (secret === undefined && isWhollyJson(task)) return { task };
  if (hasTask(environment, task)) {
    const unwritten = { task: { ...task, data: null }, isDrawnAgain: true } as const;
    if (secret === undefined) return unwritten;
    const { id, split, index } = task;
    const place = { id, environment: task.environment, split, index };
    return { ...unwritten, task: { ...place, instruction: "", data: null }, hash: taskKey(task) };
  }
  const [what, remedy] =
    secret === undefined
      ? [
          "it has what JSON cannot say, such as a function, a Map or a Date",
          "give its data as plain JSON",
        ]
      : [
          `its ${secret} holds a known key or password, such as the engine's (--api-key-env), which is never written`,
          "take that out of the task, and have the environment read it where it is needed",
        ];
  throw new UsageError(
    `Cannot start ${task.id}: ${what}, and ${environment.name} does not draw the same task, so that a later ` +
      `start could not resume it; ${remedy}, or play without a folder`,
  );
}

/**
 * Returns the first member of a task that contains a known secret. Names are not searched, because they are written
 * unchanged.
 */
function secretIn(task: Task, redactor: TaskPlace["redactor"]): string | undefined {
  if (redactor === undefined) return undefined;
  const { id: _id, environment: _environment, split: _split, ...members } = task;
  for (const [name, member] of Object.entries(members)) {
    // A member that is not JSON is not searched, and not written either.
    if (redactor.without(member) !== member) return name;
  }
  return undefined;
}

/**
 * Returns the task of a record.
 *
 * @throws UsageError if the environment has to draw it and gives another task now.
 */
export function fromTaskRecord(
  { task, isDrawnAgain, hash: recorded }: TaskRecord,
  environment: Environment,
): Task {
  if (isDrawnAgain !== true) return task;
  const drawn = drawTask(environment, task.split, task.index);
  const { data: _drawn, ...now } = drawn;
  const { data: _recorded, ...before } = task;
  const isSame =
    recorded === undefined
      ? isDeepStrictEqual(JSON.parse(JSON.stringify(now)), before)
      : taskKey(drawn) === recorded;
  if (isSame) return drawn;
  const change = drawn.id === task.id ? "another" : drawn.id;
  throw new UsageError(
    `Cannot resume ${task.id}: task ${task.index} of "${task.split}" of ${environment.name} is ` +
      `${change} now; restore what was there or choose another folder`,
  );
}

/**
 * Returns the task of an episode if its group was not recorded, for example because its source was repeatable: the task
 * in the episode's recording, or the one that the environment draws.
 *
 * @throws UsageError if the task is lost.
 */
export function redrawTask(
  {
    groupId,
    taskId,
    split,
    taskIndex,
  }: Pick<Episode, "groupId" | "taskId" | "split" | "taskIndex">,
  {
    environment,
    recorded,
    lost,
  }: {
    readonly environment: Environment;
    /** The task in the recording, if the environment draws another one at its index. */
    readonly recorded?: Task;
    /** The reason for which the recorded task is lost. */
    readonly lost?: string;
  },
): Task {
  if (recorded !== undefined) return recorded;
  if (lost !== undefined) throw notDeliverable(groupId, lost);
  let drawn: Task;
  try {
    drawn = drawTask(environment, split, taskIndex);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw notDeliverable(groupId, `it cannot be drawn: ${describeError(error)}`);
  }
  if (drawn.id === taskId) return drawn;
  const found = `task ${taskIndex} of "${split}" of ${environment.name} is ${drawn.id}`;
  throw notDeliverable(groupId, `it cannot be drawn: ${found}, expected ${taskId}`);
}

function notDeliverable(groupId: string, why: string): UsageError {
  return new UsageError(
    `Cannot deliver group ${groupId} again: its task was not recorded, because the source of that start was ` +
      `repeatable, and ${why}; start with that source, or in another folder`,
  );
}

/** A task that the environment does not draw at its index. JSON-able. */
export interface OwnTask {
  /** See `taskKey()`. */
  readonly hash: string;
  /** The task. Absent if it cannot be written: it is not JSON, or it contains a secret. */
  readonly task?: Task;
}

/**
 * Returns the record of a task for other processes and later starts; `undefined` if the environment draws the same task
 * at its index.
 */
export function ownTask(task: Task, { environment, redactor }: TaskPlace): OwnTask | undefined {
  if (hasTask(environment, task)) return undefined;
  const hash = taskKey(task);
  const isOpen = secretIn(task, redactor) === undefined;
  return isOpen && isWhollyJson(task) ? { hash, task } : { hash };
}

/** Hashes a task: all of it if it is JSON, otherwise its id, index and instruction. */
export function taskKey(task: Task): string {
  return isWhollyJson(task) ? keyOf(task) : nameKey(task);
}

/** Hashes the task of a record like `taskKey()`, even if the environment does not have the task any more. */
export function taskRecordKey({ task, isDrawnAgain, hash: recorded }: TaskRecord): string {
  if (recorded !== undefined) return recorded;
  return isDrawnAgain === true ? nameKey(task) : taskKey(task);
}

/** True if a task has the key that was recorded. */
export function isRecordedAs(recorded: string, task: Task): boolean {
  return recorded === taskKey(task) || recorded === nameKey(task);
}

function nameKey({ id, environment, split, index, instruction }: Task): string {
  return keyOf([id, environment, split, index, instruction]);
}

function keyOf(value: unknown): string {
  return hash("sha256", JSON.stringify(value, sortMembers), "hex");
}

/** Sorts the members of objects by name, so that their order does not change the hash. */
function sortMembers(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** True if the environment draws this task at its index. A task with the same id may be a variant of it. */
function hasTask(environment: Environment, task: Task): boolean {
  try {
    const drawn = drawTask(environment, task.split, task.index);
    if (isAlike(drawn, task)) return true;
    // A recorded task has lost members whose value is `undefined`.
    return isWhollyJson(drawn) && isWhollyJson(task) && taskKey(drawn) === taskKey(task);
  } catch (error) {
    if (error instanceof UsageError) return false;
    throw error;
  }
}
