import type { Task } from "../../task.ts";

/** A problem of an environment that spoils a run, or may spoil it. JSON-able. */
export interface EnvironmentProblem {
  /** A `warning` may be intended. */
  readonly severity: "error" | "warning";
  /** The task, the problem, its place and the expected behaviour, in one line. */
  readonly message: string;
  /** The place of the problem: its task and what the agent did, or `the environment`. */
  readonly where: string;
  /** The problem, without its place and the expected behaviour. */
  readonly what: string;
  /** The expected behaviour, such as `expected a finite number`. Empty if none is known. */
  readonly remedy: string;
  /** The id of the first task that has the problem. Absent if no task has to be played to see it. */
  readonly task?: string;
}

/** The place of a problem. */
export interface ProblemPlace {
  readonly task?: Task | undefined;
  /** The actions of the agent that met the problem, such as `an agent that does nothing: `. */
  readonly before?: string;
  /** Problems with the same kind are one. Default: the problem's own text. */
  readonly kind?: string | undefined;
  /** The expected behaviour, if the problem's text does not name it. */
  readonly remedy?: string;
}

interface KnownProblem extends EnvironmentProblem {
  /** The tasks that have the problem. */
  readonly tasks: Set<string>;
}

/** The largest number of problems that a check lists. */
const mostProblems = 50;

/** The problems that a check found, each listed once. */
export class ProblemList {
  /** By description. */
  readonly #known = new Map<string, KnownProblem>();

  /** Adds a problem. The message has the first task, the actions that led to it, and the number of further tasks. */
  add(
    severity: EnvironmentProblem["severity"],
    problem: string,
    { task, before = "", kind, remedy }: ProblemPlace = {},
  ): void {
    const line = problem.replaceAll(/\s*\n\s*/g, " ");
    const key = kind ?? (task === undefined ? line : line.replaceAll(task.id, "TASK"));
    const known = this.#known.get(key);
    if (known !== undefined) {
      if (task !== undefined) known.tasks.add(task.id);
      return;
    }
    const place = `${task === undefined ? "" : `task ${task.id}: `}${before}`;
    this.#known.set(key, {
      severity,
      message: `${place}${line}`,
      where: place === "" ? "the environment" : place.replace(/: $/, ""),
      ...splitProblem(line, remedy),
      ...(task !== undefined && { task: task.id }),
      tasks: new Set(task === undefined ? [] : [task.id]),
    });
  }

  /** The problems in the order in which they were found, 50 at most: errors first. */
  get listed(): readonly EnvironmentProblem[] {
    const all = [...this.#known.values()];
    const shown = new Set(
      [...all.filter(isError), ...all.filter((one) => !isError(one))].slice(0, mostProblems),
    );
    return all
      .filter((one) => shown.has(one))
      .map(({ tasks, ...problem }) => {
        const others = tasks.size > 1 ? `; the same in ${tasks.size - 1} more of the tasks` : "";
        return { ...problem, message: `${problem.message}${others}` };
      });
  }

  get errorCount(): number {
    return [...this.#known.values()].filter(isError).length;
  }

  get warningCount(): number {
    return this.#known.size - this.errorCount;
  }
}

/** Splits a problem's text into the problem and the expected behaviour. */
function splitProblem(line: string, remedy = "") {
  const parts = /^(.+?)[,;:] ((?:expected|did you mean|await|catch) .*)$/.exec(line);
  return parts === null ? { what: line, remedy } : { what: parts[1]!, remedy: parts[2]! };
}

function isError({ severity }: EnvironmentProblem): boolean {
  return severity === "error";
}
