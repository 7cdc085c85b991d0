import { UsageError } from "../../src/errors.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../packages/python-values/src/value.ts";
import type { Task } from "../../src/task.ts";

/** One action: a tool call, or `respond` with `content` for a message to the user. */
export interface TauAction {
  readonly name: string;
  readonly kwargs: PyDict;
}

/** The data of a τ-bench task beside its instruction. */
export interface TauTaskData {
  readonly userId: string;
  /** The actions that lead to the wanted end state. */
  readonly actions: readonly TauAction[];
  /** Texts that the agent must have said to the user. */
  readonly outputs: readonly string[];
}

/** The name of the action with which the agent talks to the user. */
export const RESPOND_ACTION = "respond";

/** The environment, split and index of a task. */
export interface TaskPlace {
  /** The environment's name, such as `tau-retail`. */
  readonly environment: string;
  readonly split: string;
  readonly index: number;
}

/**
 * Reads a task in τ-bench's form: `user_id`, `instruction`, `actions` of `name` and `kwargs`, and `outputs`.
 *
 * @param where - The task's place in its file, for messages.
 * @throws UsageError if a field is missing or of another type.
 */
export function readTauTask(
  value: PyValue,
  { environment, split, index }: TaskPlace,
  where: string,
): Task<TauTaskData> {
  const task = expectDict(value, where);
  return {
    id: `${environment}/${split}/${index}`,
    environment,
    split,
    index,
    instruction: readString(task, "instruction", where),
    data: {
      userId: readString(task, "user_id", where),
      actions: readList(task, "actions", where).map((action, place) =>
        readAction(action, `${where}.actions[${place}]`),
      ),
      outputs: readList(task, "outputs", where).map((output, place) =>
        expectString(output, `${where}.outputs[${place}]`),
      ),
    },
  };
}

function readAction(value: PyValue, where: string): TauAction {
  const action = expectDict(value, where);
  return {
    name: readString(action, "name", where),
    kwargs: expectDict(action.get("kwargs"), `${where}.kwargs`),
  };
}

function readString(dict: PyDict, field: string, where: string): string {
  return expectString(dict.get(field), `${where}.${field}`);
}

function readList(dict: PyDict, field: string, where: string): readonly PyValue[] {
  const value = dict.get(field);
  if (!isPyList(value)) throw unreadable(`${where}.${field}`, "a list");
  return value;
}

function expectDict(value: PyValue | undefined, where: string): PyDict {
  if (!isPyDict(value)) throw unreadable(where, "an object");
  return value;
}

function expectString(value: PyValue | undefined, where: string): string {
  if (typeof value !== "string") throw unreadable(where, "a string");
  return value;
}

function unreadable(where: string, expected: string): UsageError {
  return new UsageError(`Cannot read ${where}: expected ${expected}`);
}
