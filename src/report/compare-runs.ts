import { UsageError } from "../errors.ts";
import type { RunResults } from "./collect-results.ts";
import { areSame, boundsOf, estimateDifference, type Estimate } from "./statistics/interval.ts";
import { signTest } from "./statistics/sign-test.ts";
import type { TaskRewards } from "./task-rewards.ts";
import { mean } from "../values/sum.ts";

/** One task in both runs. JSON-able. */
export interface TaskComparison {
  readonly taskId: string;
  readonly taskIndex: number;
  /** Mean reward over the scored attempts. */
  readonly a: number;
  readonly b: number;
  readonly verdict: "better" | "worse" | "same";
}

/** The comparison of run B with run A. JSON-able. */
export interface RunComparison {
  readonly a: string;
  readonly b: string;
  /** Mean reward over the tasks that both runs scored. */
  readonly averageReward: { readonly a: number; readonly b: number };
  /**
   * The mean over tasks of B's reward minus A's, with its 95 % interval and the method of the
   * interval.
   */
  readonly difference: Estimate;
  /** The number of tasks on which B is better. */
  readonly winCount: number;
  readonly lossCount: number;
  readonly tieCount: number;
  /** The p-value of the exact two-sided sign test over wins and losses. `test` has the test's name. */
  readonly pValue: number;
  /** `mcnemar` if each run has one success or failure per task, otherwise `sign`. */
  readonly test: "mcnemar" | "sign";
  /** The number of tasks that only run A scored. Tasks that only one run scored are left out. */
  readonly onlyInA: number;
  readonly onlyInB: number;
  /** The numbers of attempts without a score. These attempts are left out. */
  readonly unscored: { readonly a: number; readonly b: number };
  /**
   * The numbers of attempts that branch from another attempt. These attempts are left out. Absent if there are none.
   */
  readonly branches?: { readonly a: number; readonly b: number };
  readonly tasks: readonly TaskComparison[];
}

/**
 * Compares two runs task by task. Tasks match by id, or by number if one of the runs has no ids.
 * @throws UsageError if the runs have different tasks, have no scored task in common, or have
 *   ambiguous numbers.
 */
export function compareRuns(a: RunResults, b: RunResults): RunComparison {
  const isApart = !a.scopes.some((scope) => b.scopes.includes(scope));
  if (a.scopes.length > 0 && b.scopes.length > 0 && isApart) {
    const [ofA, ofB] = [a.scopes.join(" and "), b.scopes.join(" and ")];
    throw new UsageError(
      `Cannot compare ${a.source} and ${b.source}: one is of ${ofA}, the other of ${ofB}`,
    );
  }
  const read = a.isByNumber || b.isByNumber ? byNumber : byId;
  const [left, right] = [read(a), read(b)];
  const pairs = [...left].flatMap(([key, task]) => {
    const other = right.get(key);
    return other === undefined ? [] : [[task, other] as const];
  });
  const tasks = pairs
    .map(([task, other]) => compareTask(task, other))
    .toSorted((first, second) => first.taskIndex - second.taskIndex || compareIds(first, second));
  const { range } = boundsOf(pairs.flatMap((pair) => pair.flatMap(({ rewards }) => rewards)));
  const difference = estimateDifference(
    tasks.map((task) => (task.verdict === "same" ? 0 : task.b - task.a)),
    range && range[1] - range[0],
  );
  if (difference === undefined) {
    throw new UsageError(
      `Cannot compare ${a.source} and ${b.source}: no task is scored in both, expected one at least`,
    );
  }
  const count = (verdict: TaskComparison["verdict"]) =>
    tasks.filter((task) => task.verdict === verdict).length;
  const [winCount, lossCount] = [count("better"), count("worse")];
  const branches = { a: a.branchCount ?? 0, b: b.branchCount ?? 0 };
  const isSingle = pairs.every((pair) => pair.every(({ rewards }) => rewards.length === 1));
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
    ...(branches.a + branches.b !== 0 && { branches }),
    tasks,
  };
}

function byId({ tasks }: RunResults): ReadonlyMap<string | number, TaskRewards> {
  return new Map([...tasks].filter(([, { rewards }]) => rewards.length > 0));
}

function byNumber(results: RunResults): ReadonlyMap<string | number, TaskRewards> {
  const tasks = new Map<number, TaskRewards>();
  for (const task of byId(results).values()) {
    const { taskId, taskIndex } = task;
    const other = tasks.get(taskIndex);
    if (other !== undefined) {
      throw new UsageError(
        `Cannot compare ${results.source} with a results file, which knows tasks by their numbers alone: ` +
          `${other.taskId} and ${taskId} both have number ${taskIndex}, expected runs' folders`,
      );
    }
    tasks.set(taskIndex, task);
  }
  return tasks;
}

function unscored({ tasks }: RunResults): number {
  return [...tasks.values()].reduce((sum, { unscoredCount }) => sum + unscoredCount, 0);
}

function compareIds(first: TaskComparison, second: TaskComparison): number {
  return first.taskId < second.taskId ? -1 : 1;
}

function compareTask(left: TaskRewards, right: TaskRewards): TaskComparison {
  const [a, b] = [mean(left.rewards), mean(right.rewards)];
  const verdict = areSame(a, b) ? "same" : b > a ? "better" : "worse";
  // A results file has only the task's number; a run's folder has its complete id.
  const taskId = left.taskId.length >= right.taskId.length ? left.taskId : right.taskId;
  return { taskId, taskIndex: left.taskIndex, a, b, verdict };
}
