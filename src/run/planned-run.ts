import type { OpenGroup } from "./group-book.ts";
import type { PlanRecord } from "./plan-run.ts";
import type { RunFolder } from "./run-folder.ts";
import type { RunManifest } from "./run-manifest.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { isRow } from "../trajectory/violation.ts";

/** What `run.json` says where nobody knows which episodes there will be. */
export const openPlan = { isOpen: true } as const;

/** The plan that `run.json` has; nothing where it leaves open which episodes there will be. */
export function planIn({ found }: RunManifest): PlanRecord | undefined {
  const plan: unknown = isRow(found) ? found["plan"] : undefined;
  if (!isRow(plan) || !Array.isArray(plan["taskIndexes"])) return undefined;
  const isWhole = Number.isSafeInteger(plan["sampleCount"]) && Number.isSafeInteger(plan["seed"]);
  return isWhole ? (plan as unknown as PlanRecord) : undefined;
}

/**
 * Whether a run may be the one that was planned, as far as can be said before it draws a task: it has as many groups
 * of as many attempts, of that environment and with those seeds, and what earlier starts finished is in its place.
 */
export function mayBePlanned(
  plan: PlanRecord,
  { source, grouping, seed = 0, setup }: StartRunOptions,
  { finished }: Pick<RunFolder, "finished">,
): boolean {
  const { environment, groupId, taskIndexes, sampleCount } = plan;
  const { size, begun = size } = grouping;
  return (
    environment === setup.environment.name &&
    source.length === taskIndexes.length &&
    (sampleCount === size || sampleCount === begun) &&
    // Branches of a fork have the seeds of what they part from.
    (groupId !== undefined || seed === plan.seed) &&
    finished.every(
      ({ groupIndex, taskIndex }) =>
        groupIndex === undefined || taskIndexes[groupIndex] === taskIndex,
    )
  );
}

/** Whether a group is the one that the plan has in its place. */
export function isPlanned(
  { groupId, split, taskIndexes }: PlanRecord,
  group: Pick<OpenGroup, "groupId" | "groupIndex" | "task">,
): boolean {
  const { task } = group;
  return (
    task.split === split &&
    task.index === taskIndexes[group.groupIndex] &&
    group.groupId === (groupId ?? task.id)
  );
}
