import { fileURLToPath } from "node:url";
import { UsageError, describeError } from "../errors.ts";
import type { TaskItem } from "./task-list.ts";
import { readTextFile } from "../text/decode-text.ts";
import { maxValueDepth, nestsDeeper } from "../json/nesting.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/**
 * Reads tasks for `defineEnvironment()`: from a JSONL file with one task a line, or from any iterable, such as the
 * rows of a data set. `toTask` turns a row into a task, if it is not one yet.
 *
 * @throws UsageError with the file and the line of an invalid task.
 */
export async function readTasks<
  Item extends TaskItem = TaskItem & Readonly<Record<string, unknown>>,
>(
  source: string | URL | AsyncIterable<unknown> | Iterable<unknown>,
  toTask: (row: Readonly<Record<string, unknown>>, index: number) => Item = (row) =>
    row as unknown as Item,
): Promise<readonly Item[]> {
  const isFile = typeof source === "string" || source instanceof URL;
  const rows = isFile ? readRows(source) : placed(source);
  const name = isFile ? String(source) : "the tasks";
  const tasks: Item[] = [];
  let index = 0;
  for await (const { place, row } of rows) {
    if (Array.isArray(row) && isFile) {
      throw new UsageError(`Cannot read ${name}: ${place} is a list, expected one task a line`);
    }
    if (typeof row !== "object" || row === null || Array.isArray(row)) {
      throw new UsageError(`Cannot read ${name}: ${place} is not an object`);
    }
    const task = toTask(row as Readonly<Record<string, unknown>>, index);
    if (typeof (task as Partial<TaskItem> | undefined)?.instruction !== "string") {
      throw new UsageError(
        `Cannot read ${name}: ${place} has no instruction, expected a text (a second argument ` +
          "makes a task of each row: (row) => ({ ...row, instruction: row.question }))",
      );
    }
    tasks.push(withNumbers(task, `Cannot read ${name}: ${place}: `, "") as Item);
    index += 1;
  }
  if (tasks.length === 0) throw new UsageError(`Cannot read ${name}: it has no tasks`);
  return tasks;
}

/** Converts the 64-bit integers of data-set rows to numbers, if a number can represent them. */
function withNumbers(value: unknown, problem: string, place: string): unknown {
  if (typeof value === "bigint") {
    if (Number.isSafeInteger(Number(value))) return Number(value);
    throw new UsageError(
      `${problem}${place} is ${value}, which JavaScript's numbers cannot represent, expected a text`,
    );
  }
  if (Array.isArray(value)) {
    const items = value.map((item, index) => withNumbers(item, problem, `${place}[${index}]`));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const isPlain =
    typeof value === "object" &&
    value !== null &&
    [Object.prototype, null].includes(Object.getPrototypeOf(value) as null);
  if (!isPlain) return value;
  const members = Object.entries(value).map(([key, member]) => {
    const inner = place === "" ? key : `${place}.${key}`;
    return [key, withNumbers(member, problem, inner)] as const;
  });
  const own = value as Readonly<Record<string, unknown>>;
  return members.every(([key, member]) => member === own[key])
    ? value
    : Object.fromEntries(members);
}

/** A row that may be a task, with its place. */
interface PlacedRow {
  readonly place: string;
  readonly row: unknown;
}

async function* placed(
  source: AsyncIterable<unknown> | Iterable<unknown>,
): AsyncGenerator<PlacedRow> {
  let index = 0;
  for await (const row of source) yield { place: `task ${index++}`, row };
}

async function* readRows(source: string | URL): AsyncGenerator<PlacedRow> {
  const file = typeof source === "string" ? source : fileURLToPath(source);
  let text: string;
  try {
    text = await readTextFile(file, { mark: "drop" });
  } catch (error) {
    throw new UsageError(`Cannot read the tasks: ${describeError(error)}`, { cause: error });
  }
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    let row: unknown;
    try {
      row = parseStrictJson(line);
      // Deeper values cannot be compared and written everywhere.
      if (nestsDeeper(line, maxValueDepth, () => row)) {
        throw new SyntaxError(`it nests deeper than ${maxValueDepth} levels`);
      }
    } catch (error) {
      throw new UsageError(`Cannot read ${file}, line ${index + 1}: ${describeError(error)}`, {
        cause: error,
      });
    }
    yield { place: `line ${index + 1}`, row };
  }
}
