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

/** One group's task, as a source gives it. */
export interface SourcedTask {
  readonly task: Task;
  /**
   * Names the group: unique within the run. Default the task's id. One that an earlier start noted is passed over
   * where it is given again with the same task.
   */
  readonly groupId?: string;
  /** Its attempts part from a recorded one instead of beginning anew. */
  readonly fork?: Fork;
}

/** Where attempts part from a recorded one. */
export interface Fork {
  readonly place: ForkPlace;
  /** The other's inputs up to there (see `inputsBefore()`). */
  readonly inputs: Inputs;
  /** The other's: its user is played on. */
  readonly seed: number;
}

/** Where a run's tasks come from, group by group. */
export interface TaskSource {
  /** How many groups there will be; absent where that is not known, or there is no end. */
  readonly length?: number;
  /**
   * Whether the group at a place is the same each time it is asked for. Where it is not, the run notes
   * each task as it takes it. Default false.
   */
  readonly repeatable?: boolean;
  /**
   * The task of the group at a place; nothing where there are no more. Places are asked for in order, one
   * at a time. Of a repeatable source some may be left out, and those of groups that earlier starts ended or began are
   * asked for before anything is played, to see that it gives them again; where it has `onGroupEnd()`, and may wait for
   * groups to end, it is asked for the first that is to be played alone, and with `redeliver` for those that ended of
   * which nothing was recorded. Any other source is asked for those that an earlier start noted as well. May wait.
   * What it throws, and what it gives that cannot be played, ends the run when the groups that were begun have come to
   * their end.
   *
   * @param options - `signal` is aborted when nothing is begun any more: what is given within five seconds from then is
   *   still noted, for the next start. Then `givenUp` (absent where the answer is always waited for) is aborted, and
   *   nobody takes what is given afterwards: a source that several starts ask keeps it for the next one.
   */
  at(
    groupIndex: number,
    options: { readonly signal: AbortSignal; readonly givenUp?: AbortSignal },
  ): SourcedTask | undefined | Promise<SourcedTask | undefined>;
  /**
   * The index of the task of the group at a place, told without making it. Places are asked for in order. A group that
   * has ended, is of that task, and lies between others of earlier starts is not asked for again. Absent, or nothing,
   * where it cannot tell.
   */
  taskIndexAt?(groupIndex: number): number | undefined;
  /**
   * Told of each group as it ends, for curricula; also of one for which an earlier start had asked, where nobody was
   * told of it. With `redeliver`, not of one that was taken and of which an attempt is played again, although it is asked
   * for that one. What it throws or rejects with ends the run (see `onEpisode`).
   */
  onGroupEnd?(group: EpisodeGroup): void;
}

/** The tasks of a plan, each once, in their order. */
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

/** Tasks of an environment in a list of one's own; see `planRun()` for what is refused. */
export function taskList(
  environment: Environment,
  scope: Pick<RunScope, "split" | "taskIndexes">,
): TaskSource {
  return planSource(planRun(environment, { ...scope, sampleCount: 1, seed: 0 }));
}

/**
 * A source with no more than a number of groups.
 *
 * @param most - At least 1; `Infinity` leaves the source as it is.
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
 * Tasks without end: pass after pass over the same ones, each pass in an order of its own that follows
 * from the seed. A group of the second pass is named `…~2`, and so on.
 */
export function endlessTasks(
  environment: Environment,
  { split, taskIndexes, seed }: Pick<RunScope, "split" | "taskIndexes" | "seed">,
): TaskSource {
  // What is refused there is refused here.
  planRun(environment, { split, taskIndexes, sampleCount: 1, seed });
  let pass = -1;
  let order: readonly number[] = [];
  const taskIndexAt = (groupIndex: number): number => {
    const wanted = Math.floor(groupIndex / taskIndexes.length);
    if (wanted !== pass) {
      pass = wanted;
      order = shuffled(taskIndexes, seededRandom(`${seed}/pass/${pass}`));
    }
    return order[groupIndex % taskIndexes.length]!;
  };
  return {
    repeatable: true,
    at(groupIndex) {
      const task = drawTask(environment, split, taskIndexAt(groupIndex));
      return pass === 0 ? { task } : { task, groupId: `${task.id}~${pass + 1}` };
    },
    taskIndexAt,
  };
}

/** Fisher and Yates's shuffle: in time that grows with the list, not with its square. */
function shuffled(items: readonly number[], random: Random): readonly number[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last--) {
    const other = random.between(0, last);
    [order[last], order[other]] = [order[other]!, order[last]!];
  }
  return order;
}

/** Tasks that a callback chooses, with what it was told of the groups that ended before. */
export function curriculum(
  choose: (groupIndex: number) => SourcedTask | undefined | Promise<SourcedTask | undefined>,
  onGroupEnd: (group: EpisodeGroup) => void = () => {},
): TaskSource {
  return { at: (groupIndex) => choose(groupIndex), onGroupEnd };
}

/**
 * Any iterable of tasks, asynchronous ones included. Whoever asked first is given what comes first; a task that a start
 * has asked for and does not wait for any more is the next one's who asks.
 */
export function tasksFrom(tasks: Iterable<Task> | AsyncIterable<Task>): TaskSource {
  const iterator =
    Symbol.asyncIterator in tasks ? tasks[Symbol.asyncIterator]() : tasks[Symbol.iterator]();
  /** Who waits, in the order in which they asked. */
  const waiting: ((drawn: Promise<SourcedTask | undefined>) => void)[] = [];
  /** What came when nobody waited any more. */
  const kept: Promise<SourcedTask | undefined>[] = [];
  let underWayCount = 0;
  const next = async (): Promise<SourcedTask | undefined> => {
    const { done, value } = await iterator.next();
    return done === true ? undefined : { task: value };
  };
  const draw = async (): Promise<void> => {
    underWayCount += 1;
    const drawn = next();
    const isLast = await drawn.then(
      (sourced) => sourced === undefined,
      () => false,
    );
    underWayCount -= 1;
    const give = waiting.shift();
    if (give !== undefined) give(drawn);
    // Whoever asks at the end finds it there again.
    else if (!isLast) kept.push(drawn);
  };
  return {
    async at(_groupIndex, { givenUp }: { readonly givenUp?: AbortSignal } = {}) {
      const there = kept.shift();
      if (there !== undefined) return await there;
      return await new Promise<SourcedTask | undefined>((resolve) => {
        const leave = (): void => void waiting.splice(waiting.indexOf(give), 1);
        const give = (drawn: Promise<SourcedTask | undefined>): void => {
          givenUp?.removeEventListener("abort", leave);
          resolve(drawn);
        };
        waiting.push(give);
        givenUp?.addEventListener("abort", leave, { once: true });
        if (waiting.length > underWayCount) void draw();
      });
    },
  };
}

/** Tasks that are pushed from outside. */
export interface PushedTasks extends TaskSource {
  /**
   * Adds tasks behind those that wait.
   *
   * @throws UsageError, and adds none, where one cannot be played, or its group's id was pushed before, and
   *   behind `end()`.
   */
  push(...tasks: readonly SourcedTask[]): void;
  /** No more will come. */
  end(): void;
  /** Tasks that were pushed and not taken yet. */
  readonly waitingCount: number;
}

/** A source that others push tasks into; a run waits for them. Where several take from it, each task is one's. */
export function pushedTasks(): PushedTasks {
  const waiting: SourcedTask[] = [];
  const knownIds = new Set<string>();
  /** Whoever waits for news. */
  const asking = new Set<() => void>();
  const state = { hasEnded: false };
  const wakeAll = (): void => {
    for (const wake of asking) wake();
  };
  const untilNews = async (signal: AbortSignal): Promise<void> => {
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
            `Cannot push ${groupId}: end() was called, and whoever takes the tasks may have gone; call end() ` +
              "behind the last push(), or start another run with a source of its own",
          );
        }
        if (knownIds.has(groupId) || ids.has(groupId)) {
          throw new UsageError(
            `Cannot push ${groupId}: it was pushed before; give what is to be played once more a \`groupId\` of ` +
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
        await untilNews(signal);
      }
      return waiting.shift();
    },
  };
}
