import { describeError } from "../../errors.ts";
import type { Environment } from "../../environment/environment.ts";
import { shownToolName, toolParameters, type ToolDefinition } from "../../message.ts";
import { isPyDict } from "../../../packages/python-values/src/value.ts";
import { findUnusableParts } from "../../../packages/tool-parsers/src/schema/find-unusable-parts.ts";
import type { Task } from "../../task.ts";

/** Returns the problems in the definitions of tools, one line each. */
export function checkTools(tools: readonly ToolDefinition[]): readonly string[] {
  const problems: string[] = [];
  const names = new Set<string>();
  for (const tool of tools) {
    const { name } = tool;
    if (names.has(name)) problems.push(`two tools are called ${name}, expected names of their own`);
    names.add(name);
    if (!/^[\w-]{1,64}$/.test(name)) {
      problems.push(
        `tool ${JSON.stringify(name)}: expected a name of 1 to 64 letters, digits, _ and -`,
      );
    }
    const shown = shownToolName(tool.openai);
    if (shown !== name) {
      problems.push(
        `tool ${name}: its definition names it ${JSON.stringify(shown) ?? "nothing"}, expected one name`,
      );
    }
    const body = tool.openai.get("function");
    const description = isPyDict(body) ? body.get("description") : undefined;
    if (typeof description !== "string" || description.trim() === "") {
      problems.push(`tool ${name}: it has no description, expected one for the model to go by`);
    }
    const problem = schemaProblem(tool);
    if (problem !== undefined) problems.push(`tool ${name}: ${problem}`);
  }
  return problems;
}

function schemaProblem(tool: ToolDefinition): string | undefined {
  const schema = toolParameters(tool);
  if (schema === undefined) return undefined;
  if (!isPyDict(schema) || schema.get("type") !== "object") {
    return 'its parameters are not the schema of an object, expected {"type": "object", "properties": {…}}';
  }
  const unusable = findUnusableParts(schema);
  return unusable.length === 0
    ? undefined
    : `its parameters are not a valid JSON Schema (${unusable.join("; ")})`;
}

/**
 * Draws tasks of each split. Returns the tasks to play, the number of all tasks, and the problems
 * that were found.
 */
export function checkTasks(
  environment: Environment,
  count: number,
): {
  readonly tasks: readonly Task[];
  readonly totalCount: number;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  let totalCount = 0;
  const tasks: Task[] = [];
  const ids = new Set<string>();
  for (const [split, size] of Object.entries(environment.splits)) {
    totalCount += size;
    for (const index of spread(size, count)) {
      const place = `task(${JSON.stringify(split)}, ${index})`;
      try {
        const task = environment.task(split, index);
        const found = taskProblems(task, environment.task(split, index));
        if (task.split !== split || task.index !== index || task.environment !== environment.name) {
          found.push("it names another environment, split or index, expected its own");
        }
        if (ids.has(task.id)) found.push(`its id ${task.id} is another task's too`);
        ids.add(task.id);
        problems.push(...found.map((problem) => `${place}: ${problem}`));
        tasks.push(task);
      } catch (error) {
        problems.push(`${place}: ${describeError(error)}`);
      }
    }
    problems.push(...refusalProblems(environment, split, size));
  }
  problems.push(...refusalProblems(environment, "no-such-split", 0));
  if (tasks.length === 0) problems.push("there is no task to play, expected one in some split");
  return { tasks, totalCount, problems };
}

/** Returns the JSON of a task. A `bigint` is a text in it. */
export function taskText(task: Task): string {
  return JSON.stringify(task, bigintAsText);
}

function taskProblems(task: Task, again: Task): string[] {
  const problems: string[] = [];
  if (taskText(task) !== taskText(again)) {
    problems.push("it is another one each time, expected a function of split and index");
  }
  if (typeof task.instruction !== "string" || task.instruction.trim() === "") {
    problems.push("it has no instruction, expected what the user wants in words");
  }
  return problems;
}

function bigintAsText(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}

/**
 * Requires that the environment refuses an index beyond its tasks. Otherwise a run plays tasks that do not exist.
 */
function refusalProblems(environment: Environment, split: string, index: number): string[] {
  const place = `task(${JSON.stringify(split)}, ${index})`;
  try {
    environment.task(split, index);
    return [`${place} is out of range and gives a task, expected a UsageError`];
  } catch (error) {
    // Compared by name, because a module may use another copy of this package.
    if (error instanceof Error && error.name === "UsageError") return [];
    return [`${place} is out of range: ${describeError(error)}, expected a UsageError`];
  }
}

/** Returns `count` indexes that are spread evenly over a range, including its ends. */
function spread(size: number, count: number): readonly number[] {
  if (size <= count) return Array.from({ length: size }, (_, index) => index);
  const last = size - 1;
  const indexes = Array.from({ length: count }, (_, n) =>
    Math.round((n * last) / Math.max(1, count - 1)),
  );
  return [...new Set(indexes)];
}
