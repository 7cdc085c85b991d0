import { UsageError } from "../errors.ts";
import { estimateDifference, type Estimate } from "./interval.ts";
import type { RunResults, TaskRewards } from "./run-results.ts";
import { signTest } from "./sign-test.ts";

/** One task in both runs. JSON-able. */
export interface TaskComparison {
  readonly taskId: string;
  readonly taskIndex: number;
  /** Mean reward over the scored attempts. */
  readonly a: number;
  readonly b: number;
  readonly verdict: "better" | "worse" | "same";
}

/** How run B compares with run A. JSON-able. */
export interface RunComparison {
  readonly a: string;
  readonly b: string;
  /** Mean reward over the tasks that both runs scored. */
  readonly averageReward: { readonly a: number; readonly b: number };
  /** B less A: the mean over tasks, paired, with its 95 % interval. */
  readonly difference: Estimate;
  /** Tasks on which B is better. */
  readonly winCount: number;
  readonly lossCount: number;
  readonly tieCount: number;
  /** The exact two-sided sign test over wins and losses; see `test` for its name. */
  readonly pValue: number;
  /** `mcnemar` where each run has one success or failure a task, else `sign`. */
  readonly test: "mcnemar" | "sign";
  /** Tasks that only one of the runs scored; they are left out. */
  readonly onlyInA: number;
  readonly onlyInB: number;
  /** Attempts without a score, which are left out too. */
  readonly unscored: { readonly a: number; readonly b: number };
  readonly tasks: readonly TaskComparison[];
}

/** Means closer than this are the same: sums of rewards round. */
const tolerance = 1e-9;

/**
 * Compares two runs task by task.
 *
 * @throws UsageError where they are of different tasks, or have no scored task in common.
 */
export function compareRuns(a: RunResults, b: RunResults): RunComparison {
  if (a.scope !== undefined && b.scope !== undefined && a.scope !== b.scope) {
    throw new UsageError(
      `Cannot compare ${a.source} and ${b.source}: one is of ${a.scope}, the other of ${b.scope}`,
    );
  }
  const [left, right] = [scoredTasks(a), scoredTasks(b)];
  const tasks = [...left]
    .flatMap(([taskIndex, task]) => {
      const other = right.get(taskIndex);
      return other === undefined ? [] : [compareTask(taskIndex, task, other)];
    })
    .toSorted((first, second) => first.taskIndex - second.taskIndex);
  const areShares = tasks.every((task) => [task.a, task.b].every(isShare));
  const difference = estimateDifference(
    tasks.map((task) => task.b - task.a),
    areShares ? 1 : Infinity,
  );
  if (difference === undefined) {
    throw new UsageError(
      `Cannot compare ${a.source} and ${b.source}: no task is scored in both, expected one at least`,
    );
  }
  const count = (verdict: TaskComparison["verdict"]) =>
    tasks.filter((task) => task.verdict === verdict).length;
  const [winCount, lossCount] = [count("better"), count("worse")];
  const isSingle = tasks.every(({ taskIndex }) =>
    [left, right].every((run) => run.get(taskIndex)?.rewards.length === 1),
  );
  const isBinary = tasks.every((task) =>
    [task.a, task.b].every((mean) => mean === 0 || mean === 1),
  );
  return {
    a: a.source,
    b: b.source,
    averageReward: { a: mean(tasks.map((task) => task.a)), b: mean(tasks.map((task) => task.b)) },
    difference,
    winCount,
    lossCount,
    tieCount: count("same"),
    pValue: signTest({ winCount, lossCount }),
    test: isSingle && isBinary ? "mcnemar" : "sign",
    onlyInA: left.size - tasks.length,
    onlyInB: right.size - tasks.length,
    unscored: { a: unscored(a), b: unscored(b) },
    tasks,
  };
}

function scoredTasks({ tasks }: RunResults): ReadonlyMap<number, TaskRewards> {
  return new Map([...tasks].filter(([, { rewards }]) => rewards.length > 0));
}

function unscored({ tasks }: RunResults): number {
  return [...tasks.values()].reduce((sum, { unscoredCount }) => sum + unscoredCount, 0);
}

function compareTask(taskIndex: number, left: TaskRewards, right: TaskRewards): TaskComparison {
  const [a, b] = [mean(left.rewards), mean(right.rewards)];
  const verdict = Math.abs(b - a) <= tolerance ? "same" : b > a ? "better" : "worse";
  // A results file knows only the number; a run's folder knows the whole name.
  const taskId = left.taskId.length >= right.taskId.length ? left.taskId : right.taskId;
  return { taskId, taskIndex, a, b, verdict };
}

function isShare(value: number): boolean {
  return value >= 0 && value <= 1;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
