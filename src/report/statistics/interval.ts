import { betaQuantile, studentQuantile } from "./quantiles.ts";
import { sum } from "../../values/sum.ts";

/**
 * The method of an interval. `clopper-pearson`: exact, for tasks with values 0 or 1.
 * `korn-graubard`: Clopper-Pearson with the effective number of tasks, for values between 0 and 1.
 * `student-t`: for values without known bounds, and for differences. `all-alike`: all tasks have
 * the same value, so the interval only covers tasks that were not drawn. `none`: there are too few
 * values.
 */
export type IntervalMethod =
  | "clopper-pearson"
  | "korn-graubard"
  | "student-t"
  | "all-alike"
  | "none";

/** A mean with its 95 % confidence interval. JSON-able. */
export interface Estimate {
  readonly value: number;
  /** The interval's lower end. Both ends are absent if the method is `none`. */
  readonly low?: number;
  readonly high?: number;
  readonly method: IntervalMethod;
  /** The number of tasks in the mean. */
  readonly taskCount: number;
}

/** Facts about the values that cannot be derived from them. */
interface ValueBounds {
  /** The least and greatest possible value of a task. Absent if the values have no bounds. */
  readonly range?: readonly [least: number, largest: number] | undefined;
  /** The number of attempts over all tasks, if each attempt has the least or the greatest value. */
  readonly attemptCount?: number | undefined;
}

const tail = 0.025;

/**
 * True if rounding alone can explain the difference of two values, such as sums of the same rewards
 * in different orders.
 */
export function areSame(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
}

/**
 * Finds the bounds of rewards from the rewards of all attempts: 0 and 1 if all lie between them, or
 * the only two values of at least ten attempts, such as -1 and 1. Returns no bounds otherwise: a
 * few attempts with two values do not exclude a third.
 */
export function boundsOf(rewards: readonly number[]): ValueBounds {
  let [least, largest] = [Infinity, -Infinity];
  for (const reward of rewards) {
    least = Math.min(least, reward);
    largest = Math.max(largest, reward);
  }
  const isShare = (least >= 0 || areSame(least, 0)) && (largest <= 1 || areSame(largest, 1));
  const range = isShare ? ([0, 1] as const) : ([least, largest] as const);
  const isEither = rewards.every((reward) => range.some((end) => areSame(reward, end)));
  const isOfTwo = isEither && rewards.length >= 10 && !areSame(least, largest);
  if (!isShare && !isOfTwo) return {};
  return { range, ...(isEither && { attemptCount: rewards.length }) };
}

/**
 * Returns the mean of per-task values with a 95 % confidence interval. The sample unit is the task,
 * because attempts at one task depend on each other.
 * With bounds, the interval is Clopper-Pearson's for the effective number of tasks: the number of
 * 0-or-1 tasks whose mean would vary as much, reduced for small samples. Without bounds it is
 * Student's. `docs/evaluation.md` has the coverage that `bench/interval-coverage.ts` measures.
 * **Source:** Korn and Graubard, "Confidence intervals for proportions with small expected number
 * of positive counts estimated from survey data", Survey Methodology 24 (1998); Clopper and
 * Pearson, Biometrika 26 (1934).
 * @param values - One per task.
 * @param bounds - Default: each value counts as one attempt.
 * @returns `undefined` if there are no values.
 */
export function estimateMean(
  values: readonly number[],
  bounds: ValueBounds = boundsOf(values),
): Estimate | undefined {
  const taskCount = values.length;
  if (taskCount === 0) return undefined;
  const { mean, variance } = momentsOf(values);
  const { range } = bounds;
  if (variance === 0) return estimateAlike(mean, taskCount, range);
  if (range === undefined) return estimateByStudent(values);
  const [least, width] = [range[0], range[1] - range[0]];
  const part = Math.min(1, Math.max(0, (mean - least) / width));
  const isEither = values.every((value) => range.some((end) => areSame(value, end)));
  const effective = isEither
    ? taskCount
    : effectiveCount({ part, variance: variance / width ** 2, taskCount }, bounds);
  const [low, high] = clopperPearson(part, effective).map((end) => least + end * width) as [
    number,
    number,
  ];
  const method = isEither ? "clopper-pearson" : "korn-graubard";
  const estimate = { value: mean, low, high, method, taskCount } as const;
  return isEither ? estimate : widen(estimate, range);
}

/**
 * Returns the mean of paired differences between two runs, one a task, with Student's 95 %
 * interval.
 *
 * @param limit - The largest possible difference in either direction: 1 between shares.
 */
export function estimateDifference(
  values: readonly number[],
  limit = Infinity,
): Estimate | undefined {
  if (values.length === 0) return undefined;
  const { mean, variance } = momentsOf(values);
  const range = limit === Infinity ? undefined : ([-limit, limit] as const);
  if (variance === 0) return estimateAlike(mean, values.length, range);
  const estimate = estimateByStudent(values);
  return range === undefined ? estimate : widen(estimate, range);
}

function estimateAlike(value: number, taskCount: number, range: ValueBounds["range"]): Estimate {
  if (range === undefined) return { value, method: "none", taskCount };
  const isEnd = range.some((end) => areSame(value, end));
  const method = isEnd ? "clopper-pearson" : "all-alike";
  return widen({ value, low: value, high: value, method, taskCount }, range);
}

/**
 * Widens an interval for the tasks that were not drawn, and keeps it within the bounds. With a
 * probability of 97.5 %, at most a share of `1 - 0.025 ^ (1 / n)` of those tasks differs from all
 * drawn ones, and that share may lie anywhere within the bounds. If all tasks are 0, or all 1, the
 * result is Clopper-Pearson's interval.
 */
function widen(
  { low, high, ...estimate }: Required<Estimate>,
  [least, largest]: readonly [number, number],
): Estimate {
  const { value, taskCount } = estimate;
  const others = 1 - tail ** (1 / taskCount);
  return {
    ...estimate,
    low: Math.max(least, Math.min(low, value - others * (value - least))),
    high: Math.min(largest, Math.max(high, value + others * (largest - value))),
  };
}

function estimateByStudent(values: readonly number[]): Required<Estimate> {
  const taskCount = values.length;
  const { mean, variance } = momentsOf(values);
  // The variance is divided by n, but Student's interval needs it divided by n - 1.
  const half = studentQuantile(1 - tail, taskCount - 1) * Math.sqrt(variance / (taskCount - 1));
  return { value: mean, low: mean - half, high: mean + half, method: "student-t", taskCount };
}

/**
 * Returns the effective number of tasks: the number of 0-or-1 tasks whose mean would vary as much,
 * reduced for small samples.
 */
function effectiveCount(
  {
    part,
    variance,
    taskCount,
  }: { readonly part: number; readonly variance: number; readonly taskCount: number },
  { attemptCount = Infinity }: ValueBounds,
): number {
  const measured = Math.min((part * (1 - part) * taskCount) / variance, attemptCount);
  const [all, few] = [attemptCount - 1, taskCount - 1].map((freedom) =>
    studentQuantile(1 - tail, freedom),
  ) as [number, number];
  // The effective number is at least the number of tasks: each counts as one 0-or-1 value or more.
  return Math.max(measured * (all / few) ** 2, Math.min(measured, taskCount));
}

/**
 * Returns Clopper-Pearson's interval of a share. The number of hits and the count may be fractions.
 */
function clopperPearson(part: number, count: number): readonly [low: number, high: number] {
  const hits = part * count;
  return [
    betaQuantile(tail, hits, count - hits + 1),
    betaQuantile(1 - tail, hits + 1, count - hits),
  ];
}

/**
 * Returns the mean and the mean squared deviation. The latter is exactly 0 if only rounding
 * separates the values.
 */
function momentsOf(values: readonly number[]): {
  readonly mean: number;
  readonly variance: number;
} {
  const mean = sum(values) / values.length;
  if (values.every((value) => areSame(value, mean)))
    return { mean: values[0] ?? mean, variance: 0 };
  return { mean, variance: sum(values.map((value) => (value - mean) ** 2)) / values.length };
}
