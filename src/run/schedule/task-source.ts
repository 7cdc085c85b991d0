import type { Environment } from "../../environment/environment.ts";
import { seededRandom, type Random } from "../../environment/seeded-random.ts";
import type { Inputs } from "../../episode/inputs/input.ts";
import { UsageError } from "../../errors.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { Task } from "../../task.ts";
import type { ForkPlace } from "../../trajectory/sample.ts";
import type { EpisodeGroup } from "./group.ts";
import { drawTask, planRun, type RunPlan, type RunScope } from "./plan-run.ts";
import { sourcedFault } from "./sourced-fault.ts";

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
  /** The recorded attempt's seed: its user continues with it. */
  readonly seed: number;
}

/** Gives the tasks of a run, group by group. */
export interface TaskSource {
  /** The number of groups; absent if it is unknown or infinite. */
  readonly length?: number;
  /**
   * True if the source gives the same group each time it is asked for an index. Otherwise the run records each task
   * when it takes it. Default false.
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
   * order. A complete group with the same task index is not asked for again, unless it is the first or last one.
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
export function planSource(plan: RunPlan): TaskSource {
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

/** Returns listed tasks of an environment. Throws like `planRun()`. */
export function taskList(
  environment: Environment,
  scope: Pick<RunScope, "split" | "taskIndexes">,
): TaskSource {
  return planSource(planRun(environment, { ...scope, sampleCount: 1, seed: 0 }));
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
export function endlessTasks(
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
      order = shuffled(taskIndexes, seededRandom(`${seed}/pass/${epoch}`));
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
export function curriculum(
  choose: (groupIndex: number) => SourcedTask | undefined | Promise<SourcedTask | undefined>,
  onGroupEnd: (group: EpisodeGroup) => void = () => {},
): TaskSource {
  return { at: (groupIndex) => choose(groupIndex), onGroupEnd };
}

/**
 * Returns a source of any iterable of tasks. Calls are answered in their order. A task that arrives after its start has
 * stopped waiting goes to the next call.
 */
export function tasksFrom(tasks: Iterable<Task> | AsyncIterable<Task>): TaskSource {
  const iterator =
    Symbol.asyncIterator in tasks ? tasks[Symbol.asyncIterator]() : tasks[Symbol.iterator]();
  /** Waiting calls in order. */
  const waiting: ((drawn: Promise<SourcedTask | undefined>) => void)[] = [];
  /** Tasks that arrived when no call waited any more. */
  const kept: Promise<SourcedTask | undefined>[] = [];
  let drawingCount = 0;
  const next = async (): Promise<SourcedTask | undefined> => {
    const { done, value } = await iterator.next();
    return done === true ? undefined : { task: value };
  };
  const draw = async (): Promise<void> => {
    drawingCount += 1;
    const drawn = next();
    const isLast = await drawn.then(
      (sourced) => sourced === undefined,
      () => false,
    );
    drawingCount -= 1;
    const give = waiting.shift();
    if (give !== undefined) give(drawn);
    // The end is not kept: a later call finds it again.
    else if (!isLast) kept.push(drawn);
  };
  return {
    async at(_groupIndex, { givenUp }: { readonly givenUp?: AbortSignal } = {}) {
      const next = kept.shift();
      if (next !== undefined) return await next;
      return await new Promise<SourcedTask | undefined>((resolve) => {
        const leave = (): void => void waiting.splice(waiting.indexOf(give), 1);
        const give = (drawn: Promise<SourcedTask | undefined>): void => {
          givenUp?.removeEventListener("abort", leave);
          resolve(drawn);
        };
        waiting.push(give);
        givenUp?.addEventListener("abort", leave, { once: true });
        if (waiting.length > drawingCount) void draw();
      });
    },
  };
}

/** A source of pushed tasks. */
export interface PushedTasks extends TaskSource {
  /**
   * Adds tasks to the end of the queue.
   *
   * @throws UsageError, and adds none, if a task cannot be played, if its group's id was pushed before, or after
   *   `end()`.
   */
  push(...tasks: readonly SourcedTask[]): void;
  /** Ends the source after the tasks that were pushed. */
  end(): void;
  /** The number of tasks that were pushed and not taken yet. */
  readonly waitingCount: number;
}

/**
 * Returns a source to which a program pushes tasks, and for which a run waits. If several runs share it, each task goes
 * to one of them.
 */
export function pushedTasks(): PushedTasks {
  const waiting: SourcedTask[] = [];
  const knownIds = new Set<string>();
  /** Waiting calls, which are woken by `push()` and `end()`. */
  const asking = new Set<() => void>();
  const state = { hasEnded: false };
  const wakeAll = (): void => {
    for (const wake of asking) wake();
  };
  const untilWoken = async (signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = withResolvers();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    asking.add(resolve);
    try {
      await promise;
    } finally {
      asking.delete(resolve);
      signal.removeEventListener("abort", onAbort);
    }
  };
  return {
    push(...tasks) {
      const ids = new Set<string>();
      for (const [place, sourced] of tasks.entries()) {
        const fault = sourcedFault(sourced);
        if (fault !== undefined) throw new UsageError(`Cannot push task ${place}: ${fault}`);
        const { task, groupId = task.id } = sourced;
        if (state.hasEnded) {
          throw new UsageError(
            `Cannot push ${groupId}: end() was called, and the run that takes the tasks may have ended; call end() ` +
              "after the last push(), or start another run with a source of its own",
          );
        }
        if (knownIds.has(groupId) || ids.has(groupId)) {
          throw new UsageError(
            `Cannot push ${groupId}: it was pushed before; give a task that is to be played again a \`groupId\` of ` +
              "its own",
          );
        }
        ids.add(groupId);
      }
      for (const groupId of ids) knownIds.add(groupId);
      for (const sourced of tasks) waiting.push(sourced);
      wakeAll();
    },
    end() {
      state.hasEnded = true;
      wakeAll();
    },
    get waitingCount() {
      return waiting.length;
    },
    async at(_groupIndex, { signal }) {
      while (waiting.length === 0 && !state.hasEnded) {
        signal.throwIfAborted();
        await untilWoken(signal);
      }
      return waiting.shift();
    },
  };
}
