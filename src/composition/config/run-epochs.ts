import type { Environment } from "../../environment/environment.ts";
import type { FinishedEpisode } from "../../run/folder/episode-row.ts";
import type { PlanRecord, RunPlan } from "../../run/schedule/plan-run.ts";
import {
  boundedSource,
  createEndlessTasks,
  createPlanSource,
  type TaskSource,
} from "../../run/schedule/task-source.ts";
import type { ScopeConfig } from "./scope-config.ts";

/** The plan in `run.json` of a run with epochs. JSON-able. */
interface OpenPlanRecord extends Omit<PlanRecord, "taskIndexes" | "sampleCount"> {
  /** The number of episodes is open: a later start may play more. */
  readonly isOpen: true;
  /** The number of attempts per group. */
  readonly sampleCount: number;
  /** The task indexes of each epoch, 0-based. */
  readonly passOver: readonly number[];
}

/**
 * Returns the source of a run's tasks: its plan, or epochs over the plan's tasks.
 *
 * @param finished - The episodes of earlier starts. Their groups stay in the run even if `groups`
 *   is now lower.
 */
export function sourceOf(
  { epochs }: Pick<ScopeConfig, "epochs">,
  plan: RunPlan,
  environment: Environment,
  finished: readonly Pick<FinishedEpisode, "groupIndex">[] = [],
): TaskSource {
  if (epochs === undefined) return createPlanSource(plan);
  const { count, mostGroups = Infinity } = epochs;
  const farthest = finished.reduce((most, row) => Math.max(most, (row.groupIndex ?? -1) + 1), 0);
  const bound = Math.max(mostGroups, farthest);
  const most = Math.min(count * plan.scope.taskIndexes.length, bound);
  return boundedSource(createEndlessTasks(environment, plan.scope), most);
}

/** Returns the plan for `run.json`. It does not change if a later start plays more epochs. */
export function describePlan(
  { epochs }: Pick<ScopeConfig, "epochs">,
  plan: PlanRecord,
): PlanRecord | OpenPlanRecord {
  if (epochs === undefined) return plan;
  const { taskIndexes, ...rest } = plan;
  return { ...rest, isOpen: true, passOver: taskIndexes };
}
