import { UsageError, describeError } from "../errors.ts";
import type { Task } from "../task.ts";
import { readLine } from "./read-line.ts";
import type { UserLine } from "./user.ts";
import { readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/**
 * Reads the lines of a scripted user from a JSON file: a list of lines for every task, or an object
 * from task id to the task's lines. A line is text, or `{"text": …, "leaves": true}` for a line
 * with which the user leaves.
 *
 * @returns a function for `createScriptedUser()` from task to lines. It throws UsageError for a task that
 *   the file does not name.
 * @throws UsageError that names the file and the position if it cannot be read.
 */
export async function readScript(file: string): Promise<(task: Task) => readonly UserLine[]> {
  const value = await readJson(file);
  if (Array.isArray(value)) {
    const lines = asLines(value, file);
    return () => lines;
  }
  if (typeof value !== "object" || value === null) {
    throw new UsageError(
      `Cannot read the script ${file}: expected a list of lines or an object from task id to lines`,
    );
  }
  const linesById = new Map(
    Object.entries(value).map(([id, lines]) => [id, asLines(lines, `${file}: ${id}`)] as const),
  );
  return ({ id }) => {
    const lines = linesById.get(id);
    if (lines !== undefined) return lines;
    const known = [...linesById.keys()].slice(0, 3).join(", ");
    throw new UsageError(
      `Cannot play the user of task ${id}: ${file} has no lines for it, only for ` +
        `${linesById.size} other tasks (${known}${linesById.size > 3 ? ", …" : ""})`,
    );
  };
}

async function readJson(file: string): Promise<unknown> {
  try {
    return parseStrictJson(await readTextFile(file, { mark: "drop" }));
  } catch (error) {
    throw new UsageError(`Cannot read the script ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
}

function asLines(value: unknown, place: string): readonly UserLine[] {
  if (!Array.isArray(value)) throw new UsageError(`Cannot read ${place}: expected a list of lines`);
  if (value.length === 0) throw new UsageError(`Cannot read ${place}: expected at least one line`);
  return value.map((given: unknown, index) => {
    const line = readLine(given);
    if (line !== undefined) return line;
    throw new UsageError(
      `Cannot read ${place}[${index}]: expected text, or {"text": …, "leaves": true}`,
    );
  });
}
