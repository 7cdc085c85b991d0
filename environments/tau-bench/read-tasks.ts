import { UsageError } from "../../src/errors.ts";
import { findItems, type Extent } from "../../src/json/json-members.ts";
import {
  MAX_JSON_DEPTH,
  parsePythonJson,
} from "../../packages/python-values/src/json/json-parse.ts";
import type { PyValue } from "../../packages/python-values/src/value.ts";
import { isPyList } from "../../packages/python-values/src/value.ts";
import type { Task } from "../../src/task.ts";
import { isAlikeJson, parseBundleJson } from "./read-records.ts";
import { readTauTask, type TaskPlace, type TauTaskData } from "./tau-task.ts";

/** The tasks of a split, in the file's order. */
export interface SplitTasks {
  readonly length: number;
  /**
   * The task at an index, made at its first read; `undefined` beyond the end.
   *
   * @throws UsageError if it is not a τ-bench task.
   */
  at(index: number): Task<TauTaskData> | undefined;
}

/**
 * Reads the tasks of a split's file. A run plays a few of hundreds: the list is read at once, and a task is made at
 * its first read.
 *
 * @throws UsageError if the file is not a list.
 */
export function readSplitTasks(
  bytes: Buffer,
  file: string,
  place: Omit<TaskPlace, "index">,
): SplitTasks {
  const text = bytes.toString("utf8");
  const items = findItems(bytes, 0, MAX_JSON_DEPTH - 1);
  if (items !== undefined && isAlikeJson(text)) {
    const read = ([start, end]: Extent): PyValue =>
      parsePythonJson(bytes.toString("utf8", start, end));
    return new LazyTasks(items.length, file, place, (index) => read(items[index] as Extent));
  }
  const values = parseBundleJson(text, file);
  if (!isPyList(values)) throw new UsageError(`Cannot read ${file}: expected a list of tasks`);
  return new LazyTasks(values.length, file, place, (index) => values[index] as PyValue);
}

class LazyTasks implements SplitTasks {
  readonly length: number;
  readonly #file: string;
  readonly #place: Omit<TaskPlace, "index">;
  readonly #read: (index: number) => PyValue;
  readonly #known = new Map<number, Task<TauTaskData>>();

  constructor(
    length: number,
    file: string,
    place: Omit<TaskPlace, "index">,
    read: (index: number) => PyValue,
  ) {
    this.length = length;
    this.#file = file;
    this.#place = place;
    this.#read = read;
  }

  at(index: number): Task<TauTaskData> | undefined {
    if (!Number.isInteger(index) || index < 0 || index >= this.length) return undefined;
    const known = this.#known.get(index);
    if (known !== undefined) return known;
    const place = { ...this.#place, index };
    const task = readTauTask(this.#read(index), place, `${this.#file}: [${index}]`);
    this.#known.set(index, task);
    return task;
  }
}
