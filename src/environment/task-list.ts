import { UsageError } from "../errors.ts";
import type { Task } from "../task.ts";

/** The common members of a defined environment's tasks. */
export interface TaskItem {
  /** The user's request in words. If the environment has no user, the agent reads it first. */
  readonly instruction: string;
  /** The last part of the task's id; default: its index. */
  readonly id?: string;
}

/** Tasks in order: an array, or a length and a function that draws a task by its index. */
export interface TaskList<Item> {
  readonly length: number;
  at(index: number): Item | undefined;
}

/** The tasks of one split, named `test`, or of several splits by name. */
export type TaskSplits<Item> = TaskList<Item> | Readonly<Record<string, TaskList<Item>>>;

/** An environment's validated tasks. */
interface NamedTasks<Item> {
  /** Number of tasks of each split. */
  readonly splits: Readonly<Record<string, number>>;
  /**
   * Returns the task at an index of a split.
   *
   * @throws UsageError for an unknown split, an index out of range, or an invalid task.
   */
  task(split: string, index: number): Task<Item>;
}

/**
 * Assigns ids to tasks. Tasks of arrays are validated immediately, drawn tasks when they are drawn.
 *
 * @throws UsageError naming the task and its problem.
 */
export function nameTasks<Item extends TaskItem>(
  environment: string,
  tasks: TaskSplits<Item>,
): NamedTasks<Item> {
  const bySplit = splitsOf(environment, tasks);
  const task = (split: string, index: number): Task<Item> => {
    const list = bySplit.get(split);
    if (list === undefined || !Number.isInteger(index) || index < 0 || index >= list.length) {
      const known = Array.from(bySplit, ([name, { length }]) => `${name} 0 to ${length - 1}`);
      throw new UsageError(
        `Cannot find task ${index} of split "${split}" of ${environment}, expected ${known.join(" or ")}`,
      );
    }
    return toTask(list.at(index), { environment, split, index });
  };
  for (const [split, list] of bySplit) {
    if (Array.isArray(list)) assertDistinct(list.map((_, index) => task(split, index).id));
  }
  const splits = Object.fromEntries(Array.from(bySplit, ([name, { length }]) => [name, length]));
  return { splits, task };
}

function splitsOf<Item>(
  environment: string,
  tasks: TaskSplits<Item>,
): ReadonlyMap<string, TaskList<Item>> {
  const expected =
    `expected a list of tasks such as [{ instruction: "…" }], or lists by split name, ` +
    `such as { train: […], test: […] }`;
  if (typeof tasks !== "object" || tasks === null) {
    throw new UsageError(`Cannot define environment ${environment}: it has no tasks, ${expected}`);
  }
  const bySplit: ReadonlyMap<string, TaskList<Item>> = isList(tasks)
    ? new Map([["test", tasks]])
    : new Map(Object.entries(tasks));
  if (bySplit.size === 0) {
    throw new UsageError(`Cannot define environment ${environment}: it has no tasks, ${expected}`);
  }
  for (const [split, list] of bySplit) {
    if (isList(list) && Number.isInteger(list.length) && list.length > 0) continue;
    const isStream = typeof list === "object" && list !== null && Symbol.asyncIterator in list;
    throw new UsageError(
      `Cannot define environment ${environment}: split "${split}" has no tasks, ` +
        (isStream ? "expected `await readTasks(…)` around what is read bit by bit" : expected),
    );
  }
  return bySplit;
}

function isList<Item>(value: unknown): value is TaskList<Item> {
  return (
    typeof value === "object" &&
    value !== null &&
    "length" in value &&
    "at" in value &&
    typeof value.at === "function"
  );
}

function toTask<Item extends TaskItem>(
  item: Item | undefined,
  place: { readonly environment: string; readonly split: string; readonly index: number },
): Task<Item> {
  const { environment, split, index } = place;
  const where = `Cannot use task ${index} of split "${split}" of ${environment}`;
  if (typeof item !== "object" || item === null) {
    const what = item === undefined ? "nothing (a forgotten return?)" : JSON.stringify(item);
    throw new UsageError(`${where}: it is ${what}, expected an object with an instruction`);
  }
  const { instruction, id = String(index) } = item;
  if (typeof instruction !== "string") {
    const what = Array.isArray(instruction)
      ? "its instruction is a list of parts: there is no renderer for images, sound and files yet"
      : "it has no instruction";
    throw new UsageError(`${where}: ${what}, expected a text`);
  }
  if (typeof id !== "string" || !/^[^\s/#]+$/.test(id)) {
    throw new UsageError(
      `${where}: its id is ${JSON.stringify(id)}, expected a text without spaces, / and #, or none`,
    );
  }
  return {
    id: `${environment}/${split}/${id}`,
    environment,
    split,
    index,
    instruction,
    data: item,
  };
}

function assertDistinct(ids: readonly string[]): void {
  const seen = new Map<string, number>();
  for (const [index, id] of ids.entries()) {
    const other = seen.get(id);
    if (other !== undefined) {
      throw new UsageError(
        `Cannot use tasks ${other} and ${index}: both have the id ${id}, expected one for each, or none`,
      );
    }
    seen.set(id, index);
  }
}
