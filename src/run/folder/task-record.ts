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

/** A task as the folder keeps it for later starts. JSON-able. */
export interface TaskRecord {
  readonly task: Task;
  /** Its data cannot be written: a later start draws the task from the environment once more. */
  readonly isDrawnAgain?: true;
  /** See `taskKey()`. Present where the task holds a secret: neither its data nor its instruction is written. */
  readonly hash?: string;
}

/** Where a task is played, and what is not written of it. */
interface TaskPlace {
  readonly environment: Environment;
  /** Knows the secrets that are not written. */
  readonly redactor?: Pick<Redactor, "without"> | undefined;
}

/**
 * How a task is noted whose source may not give it again: as it is where JSON says all of it, and none of that
 * is to be kept secret.
 *
 * @throws UsageError for any other that is not the very task that the environment draws in its place.
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
    `Cannot begin ${task.id}: ${what}, and ${environment.name} does not draw the same task, so that a later ` +
      `start could not go on with it; ${remedy}, or play without a folder`,
  );
}

/** The first member of a task that holds a known secret; its names are written as they are, and count as none. */
function secretIn(task: Task, redactor: TaskPlace["redactor"]): string | undefined {
  if (redactor === undefined) return undefined;
  const { id: _id, environment: _environment, split: _split, ...members } = task;
  for (const [name, member] of Object.entries(members)) {
    // A member that JSON cannot say is not looked through, and not written either.
    if (redactor.without(member) !== member) return name;
  }
  return undefined;
}

/**
 * The task that was noted.
 *
 * @throws UsageError where it is to be drawn from the environment, and that gives another one now.
 */
export function fromTaskRecord(
  { task, isDrawnAgain, hash: noted }: TaskRecord,
  environment: Environment,
): Task {
  if (isDrawnAgain !== true) return task;
  const drawn = drawTask(environment, task.split, task.index);
  const { data: _drawn, ...now } = drawn;
  const { data: _noted, ...before } = task;
  const isSame =
    noted === undefined
      ? isDeepStrictEqual(JSON.parse(JSON.stringify(now)), before)
      : taskKey(drawn) === noted;
  if (isSame) return drawn;
  const change = drawn.id === task.id ? "another" : drawn.id;
  throw new UsageError(
    `Cannot go on with ${task.id}: task ${task.index} of "${task.split}" of ${environment.name} is ` +
      `${change} now; bring back what was there or choose another folder`,
  );
}

/**
 * The task of an episode of which nothing is noted, as where its source was to give it again: as it was recorded,
 * where it was, or as its environment draws it.
 *
 * @throws UsageError where it cannot be had any more.
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
    /** The task that it was played with, where it is recorded as one of its own. */
    readonly recorded?: Task;
    /** Why that cannot be had. */
    readonly lost?: string;
  },
): Task {
  if (recorded !== undefined) return recorded;
  if (lost !== undefined) throw notHandedOut(groupId, lost);
  let drawn: Task;
  try {
    drawn = drawTask(environment, split, taskIndex);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw notHandedOut(groupId, `it cannot be drawn: ${describeError(error)}`);
  }
  if (drawn.id === taskId) return drawn;
  const found = `task ${taskIndex} of "${split}" of ${environment.name} is ${drawn.id}`;
  throw notHandedOut(groupId, `it cannot be drawn: ${found}, expected ${taskId}`);
}

function notHandedOut(groupId: string, why: string): UsageError {
  return new UsageError(
    `Cannot hand out group ${groupId} again: its task is not noted, as where its source was repeatable, this one ` +
      `is not asked for it once more, and ${why}; start with the source of that start, or in another folder`,
  );
}

/** A task that is not the one that its environment draws in its place. JSON-able. */
export interface OwnTask {
  /** See `taskKey()`. */
  readonly hash: string;
  /** Absent where it cannot be written: JSON does not say it, or it holds a secret. */
  readonly task?: Task;
}

/**
 * What is written of a task beside its place, for whoever plays it elsewhere or later; nothing where the
 * environment draws the very task there.
 */
export function ownTask(task: Task, { environment, redactor }: TaskPlace): OwnTask | undefined {
  if (hasTask(environment, task)) return undefined;
  const hash = taskKey(task);
  const isOpen = secretIn(task, redactor) === undefined;
  return isOpen && isWhollyJson(task) ? { hash, task } : { hash };
}

/**
 * What a task is told from others by, however it was made: all of it where JSON says it, else its name, its
 * place and its instruction.
 */
export function taskKey(task: Task): string {
  return isWhollyJson(task) ? keyOf(task) : nameKey(task);
}

/** The same by what is noted of a task, also where the environment does not have it any more. */
export function taskRecordKey({ task, isDrawnAgain, hash: noted }: TaskRecord): string {
  if (noted !== undefined) return noted;
  return isDrawnAgain === true ? nameKey(task) : taskKey(task);
}

/** Whether a task is the one that was noted with a key, as far as that tells. */
export function isRecordedAs(noted: string, task: Task): boolean {
  return noted === taskKey(task) || noted === nameKey(task);
}

function nameKey({ id, environment, split, index, instruction }: Task): string {
  return keyOf([id, environment, split, index, instruction]);
}

function keyOf(said: unknown): string {
  return hash("sha256", JSON.stringify(said, inOrder), "hex");
}

/** Members by their names, whoever wrote them in which order. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Whether the environment draws the task as it was given: under its name there may be a variant of it. */
function hasTask(environment: Environment, task: Task): boolean {
  try {
    const drawn = drawTask(environment, task.split, task.index);
    if (isAlike(drawn, task)) return true;
    // One that was noted has lost members without a value.
    return isWhollyJson(drawn) && isWhollyJson(task) && taskKey(drawn) === taskKey(task);
  } catch (error) {
    if (error instanceof UsageError) return false;
    throw error;
  }
}
