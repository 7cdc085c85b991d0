import type { Environment } from "../../environment/environment.ts";
import type { FinishedEpisode } from "../../run/folder/episode-row.ts";
import type { PlanRecord, RunPlan } from "../../run/schedule/plan-run.ts";
import {
  boundedSource,
  endlessTasks,
  planSource,
  type TaskSource,
} from "../../run/schedule/task-source.ts";
import type { ScopeConfig } from "./scope-config.ts";

/** What `run.json` says of a run that goes over its tasks again and again. JSON-able. */
interface OpenPlanRecord extends Omit<PlanRecord, "taskIndexes" | "sampleCount"> {
  /** How many episodes there will be is not said: a later start may go on to more. */
  readonly isOpen: true;
  /** Attempts per group. */
  readonly sampleCount: number;
  /** The tasks of each pass, 0-based. */
  readonly passOver: readonly number[];
}

/**
 * Where a run's tasks come from: its plan, or epochs over the plan's tasks.
 *
 * @param finished - What earlier starts finished: a bound that is lower now does not disown it.
 */
export function sourceOf(
  { epochs }: Pick<ScopeConfig, "epochs">,
  plan: RunPlan,
  environment: Environment,
  finished: readonly Pick<FinishedEpisode, "groupIndex">[] = [],
): TaskSource {
  if (epochs === undefined) return planSource(plan);
  const { count, mostGroups = Infinity } = epochs;
  const farthest = finished.reduce((most, row) => Math.max(most, (row.groupIndex ?? -1) + 1), 0);
  const bound = Math.max(mostGroups, farthest);
  const most = Math.min(count * plan.scope.taskIndexes.length, bound);
  return boundedSource(endlessTasks(environment, plan.scope), most);
}

/** What `run.json` says of the plan, so that it holds however far the run goes. */
export function describePlan(
  { epochs }: Pick<ScopeConfig, "epochs">,
  plan: PlanRecord,
): PlanRecord | OpenPlanRecord {
  if (epochs === undefined) return plan;
  const { taskIndexes, ...rest } = plan;
  return { ...rest, isOpen: true, passOver: taskIndexes };
}
