import type { GroupLedger, OpenGroup } from "./group-ledger.ts";
import type { RunResult } from "../live-run.ts";
import type { PlanRecord } from "./plan-run.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import type { RunManifest } from "../folder/run-manifest.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import { isRow } from "../../trajectory/violation.ts";

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
 * Whether a run may be the one that was planned, as far as can be said before it draws a task: it has no more groups,
 * of as many attempts, of that environment and with those seeds, and what earlier starts finished was planned. Fewer
 * groups, or a number that nobody knows, may be a part of them: each is held against the plan as it is begun.
 */
export function mayBePlanned(
  plan: PlanRecord,
  { source, grouping, seed = 0, setup }: StartRunOptions,
  { finished }: Pick<RunFolder, "finished">,
): boolean {
  const { environment, groupId, taskIndexes, sampleCount } = plan;
  const { size, begun = size } = grouping;
  const { length = 0 } = source;
  const known = new Set(taskIndexes);
  return (
    environment === setup.environment.name &&
    length <= taskIndexes.length &&
    (sampleCount === size || sampleCount === begun) &&
    // Branches of a fork have the seeds of what they part from.
    (groupId !== undefined || seed === plan.seed) &&
    finished.every((row) => known.has(row.taskIndex) && wasPlanned(plan, row))
  );
}

/** Whether a finished attempt at one of its tasks has the place and the name that the plan gives it. */
function wasPlanned(
  { groupId, split, taskIndexes }: PlanRecord,
  row: RunFolder["finished"][number],
): boolean {
  const { groupIndex, hasOwnName = false, rolloutId, sampleIndex, taskIndex } = row;
  return (
    row.split === split &&
    groupIndex !== undefined &&
    taskIndexes[groupIndex] === taskIndex &&
    (groupId === undefined ? !hasOwnName : rolloutId === `${groupId}#${sampleIndex}`)
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

/**
 * What a run's folder says of its end, by the plan that it has: where a source gave a part of that, the rest is still
 * to be played.
 */
export function endByPlan(
  { taskIndexes }: PlanRecord,
  {
    end,
    grouping: { size, begun = size },
    book,
  }: {
    readonly end: RunResult["end"];
    readonly grouping: StartRunOptions["grouping"];
    readonly book: GroupLedger;
  },
): { readonly end: RunResult["end"]; readonly planned?: number } {
  const isPart = end === "finished" && !book.areFinished(taskIndexes.length);
  return {
    end: isPart ? "interrupted" : end,
    // With more attempts than are needed, nobody knows how many will come to their end.
    ...(begun === size && { planned: taskIndexes.length * size }),
  };
}
