import type { Environment } from "../../src/environment/environment.ts";
import type { Random } from "../../src/environment/seeded-random.ts";
import type { Clock } from "../../src/async/clock.ts";
import {
  createTaskList,
  type Fork,
  type SourcedTask,
  type TaskSource,
} from "../../src/run/schedule/task-source.ts";
import type { Task } from "../../src/task.ts";
import type { SimulatedWorld } from "./simulated-world.ts";

/** The tasks of a run, group by group; each process makes a source of them. */
export type WantedGroups =
  | { readonly type: "tasks"; readonly source: "list" | "growing" | "feed"; readonly count: number }
  | {
      readonly type: "fork";
      readonly groupId: string;
      readonly task: Task;
      readonly fork: Fork;
      readonly isRepeatable: boolean;
    };

/**
 * Creates the source of one process.
 * @param isLast - True if no further process follows: the source gives all remaining groups.
 * @param noted - Ids of the groups that earlier processes noted as started.
 */
export function simulatedSource(
  wanted: WantedGroups,
  options: {
    readonly environment: Environment;
    readonly world: SimulatedWorld;
    readonly clock: Clock;
    readonly isLast: boolean;
    readonly noted: ReadonlySet<string>;
  },
): TaskSource {
  const { clock, environment, isLast, noted, world } = options;
  const { random } = world;
  if (wanted.type === "fork") {
    const { isRepeatable, ...given } = wanted;
    if (!isRepeatable) return feed([given], noted, { clock, random });
    const at = (): SourcedTask => given;
    return { length: 1, repeatable: true, at };
  }
  const { count, source } = wanted;
  const countNow = source === "growing" && !isLast ? random.between(1, count) : count;
  const taskIndexes = Array.from({ length: countNow }, (_, index) => index);
  if (source !== "feed") return createTaskList(environment, { split: "test", taskIndexes });
  const given = taskIndexes.map((index) => ({ task: environment.task("test", index) }));
  return feed(given, noted, { clock, random });
}

/** Gives each group that was not noted yet once, with random delays. */
function feed(
  given: readonly SourcedTask[],
  noted: ReadonlySet<string>,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): TaskSource {
  const left = given.filter(({ task, groupId = task.id }) => !noted.has(groupId));
  return {
    async at(_groupIndex, { signal }) {
      // Not every source heeds its signal.
      await clock.sleep(random.between(1, 500), random.chance(0.7) ? { signal } : {});
      return left.shift();
    },
  };
}
