import type { ColumnSource } from "../../columns/column-source.ts";
import type { Environment } from "../../environment/environment.ts";
import { createSeededRandom, type Random } from "../../environment/seeded-random.ts";
import type { Inputs } from "../../episode/inputs/input.ts";
import type { Task } from "../../task.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import type { EpisodeGroup } from "./group.ts";
import { drawTask, planRun, type RunPlan, type RunScope } from "./plan-run.ts";

/** The task of a group, as a source gives it. */
export interface SourcedTask {
  readonly task: Task;
  /**
   * The group's id, unique within the run. Default: the task's id. A group that an earlier start recorded is skipped if
   * the source gives it again with the same task.
   */
  readonly groupId?: string;
  /** The recorded attempt from which the group's attempts branch. Absent if they play from their first turn. */
  readonly fork?: Fork;
}

/** A turn of a recorded attempt at which other attempts branch. */
export interface Fork {
  readonly place: ForkPlace;
  /** The recorded inputs before that turn (see `inputsBefore()`). */
  readonly inputs: Inputs;
  /** The seed of the recorded attempt, with which its user continues. */
  readonly seed: number;
  /**
   * Finds the bytes of the side columns that the inputs name (see `openColumnFolder()`). Required if the inputs are from
   * another folder and have columns. They are copied when the group is taken.
   */
  readonly columns?: ColumnSource;
}

/** The source of a run's tasks. It returns them group by group. */
export interface TaskSource {
  /** The number of groups; absent if it is unknown or infinite. */
  readonly length?: number;
  /**
   * True if the source gives the same group each time it is asked for an index. Otherwise the run records each task
   * when the source gives it. Default false.
   */
  readonly repeatable?: boolean;
  /**
   * Returns the task of a group; `undefined` if there are no more. May wait. If it throws, or gives a task that cannot
   * be played, the run ends after the started groups have ended.
   *
   * Indexes are asked for in order, one at a time. A repeatable source may be asked for some indexes only. It is also
   * asked for groups of earlier starts before anything is played, to check that it gives them again. A repeatable
   * source with `onGroupEnd()` may wait for groups to end: it is asked only for the first unfinished group and, with
   * `redeliver`, for complete groups without a recording. Any other source is also asked for groups that an earlier
   * start recorded.
   *
   * @param options - `signal` aborts when no further group is started. A task that is given within five seconds after
   *   that is still recorded for the next start. Then `givenUp` aborts, and the answer is ignored: a source for several
   *   starts should keep it for the next one. `givenUp` is absent if the caller always waits.
   */
  at(
    groupIndex: number,
    options: { readonly signal: AbortSignal; readonly givenUp?: AbortSignal },
  ): SourcedTask | undefined | Promise<SourcedTask | undefined>;
  /**
   * Returns the task index of a group without making the task; `undefined` if it is unknown. Indexes are asked for in
   * order. For a complete group with the same task index, `at()` is not called again, unless it is the first or last
   * group.
   */
  taskIndexAt?(groupIndex: number): number | undefined;
  /**
   * Called with each group when it ends, for curricula; also with a group of an earlier start that was not reported.
   * With `redeliver`, it is not called again for a group that was taken, even if the source is asked for that group
   * because an attempt is played again. If it throws or rejects, the run ends (see `onEpisode`).
   */
  onGroupEnd?(group: EpisodeGroup): void;
}

/** Returns the tasks of a plan, each once, in order. */
export function createPlanSource(plan: RunPlan): TaskSource {
  const { taskIndexes, sampleCount } = plan.scope;
  return {
    length: taskIndexes.length,
    repeatable: true,
    at: (groupIndex) =>
      groupIndex < taskIndexes.length
        ? { task: plan.at(groupIndex * sampleCount).task }
        : undefined,
    taskIndexAt: (groupIndex) => taskIndexes[groupIndex],
  };
}

/** Creates a source that returns the tasks with the given indexes, each once, in order. Throws like `planRun()`. */
export function createTaskList(
  environment: Environment,
  scope: Pick<RunScope, "split" | "taskIndexes">,
): TaskSource {
  return createPlanSource(planRun(environment, { ...scope, sampleCount: 1, seed: 0 }));
}

/**
 * Limits a source to a number of groups.
 *
 * @param most - At least 1; `Infinity` returns the source unchanged.
 */
export function boundedSource(source: TaskSource, most: number): TaskSource {
  if (most === Infinity) return source;
  const length = Math.min(source.length ?? Infinity, most);
  return {
    ...source,
    length,
    at: (groupIndex, options) => (groupIndex < length ? source.at(groupIndex, options) : undefined),
  };
}

/**
 * Returns tasks without end: epoch after epoch, each in an order that follows from the seed. A group of the second
 * epoch has the id `…~2`, and so on.
 */
export function createEndlessTasks(
  environment: Environment,
  { split, taskIndexes, seed }: Pick<RunScope, "split" | "taskIndexes" | "seed">,
): TaskSource {
  // Throws for a scope that `planRun()` refuses.
  planRun(environment, { split, taskIndexes, sampleCount: 1, seed });
  let epoch = -1;
  let order: readonly number[] = [];
  const taskIndexAt = (groupIndex: number): number => {
    const wanted = Math.floor(groupIndex / taskIndexes.length);
    if (wanted !== epoch) {
      epoch = wanted;
      order = shuffled(taskIndexes, createSeededRandom(`${seed}/pass/${epoch}`));
    }
    return order[groupIndex % taskIndexes.length]!;
  };
  return {
    repeatable: true,
    at(groupIndex) {
      const task = drawTask(environment, split, taskIndexAt(groupIndex));
      return epoch === 0 ? { task } : { task, groupId: `${task.id}~${epoch + 1}` };
    },
    taskIndexAt,
  };
}

/** The Fisher-Yates shuffle, in linear time. */
function shuffled(items: readonly number[], random: Random): readonly number[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last--) {
    const other = random.between(0, last);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}

/** Returns a source of tasks that a callback chooses, for example by the groups that ended before. */
export function createCurriculum(
  choose: (groupIndex: number) => SourcedTask | undefined | Promise<SourcedTask | undefined>,
  onGroupEnd: (group: EpisodeGroup) => void = () => {},
): TaskSource {
  return { at: (groupIndex) => choose(groupIndex), onGroupEnd };
}
