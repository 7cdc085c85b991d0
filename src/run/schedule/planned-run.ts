import { isObject } from "../../values/is-object.ts";
import type { GroupLedger } from "./group-ledger.ts";
import type { OpenGroup } from "./open-group.ts";
import type { RunResult } from "../live-run.ts";
import type { PlanRecord } from "./plan-run.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import type { RunManifest } from "../folder/run-manifest.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import { groupingCounts } from "./attempt-counts.ts";

/** The `plan` in `run.json` if the run's episodes are not known in advance. */
export const openPlan = { isOpen: true } as const;

/** Compares the groups that a run plays with the plan in its `run.json`, and marks the plan as open when they differ. */
export class PlannedRun {
  readonly #folder: RunFolder | undefined;
  #plan: PlanRecord | undefined;
  /** The write of `run.json` that marks the plan as open. */
  #marking: Promise<void> | undefined;

  private constructor(folder: RunFolder | undefined, plan: PlanRecord | undefined) {
    this.#folder = folder;
    this.#plan = plan;
  }

  /** Reads the plan of a folder, and marks it as open if these options cannot play it. */
  static async open(options: StartRunOptions): Promise<PlannedRun> {
    const { folder } = options;
    const plan = folder && planIn(folder.manifest);
    const planned = new PlannedRun(folder, plan);
    if (folder && plan && !mayBePlanned(plan, options, folder)) await planned.#markOpen();
    return planned;
  }

  /** Resolves when a group may be played. If the group is not in the plan, `run.json` is first marked as open. */
  async admit(group: OpenGroup): Promise<void> {
    if (this.#plan && !isPlanned(this.#plan, group)) await this.#markOpen();
    else await this.#marking;
  }

  async #markOpen(): Promise<void> {
    this.#plan = undefined;
    this.#marking = this.#folder?.updateFound({ plan: openPlan });
    await this.#marking;
  }

  /**
   * Returns the end that the run's folder records. If the source gave only a part of the planned groups, the run counts
   * as interrupted although the source is finished.
   */
  endOf(
    end: RunResult["end"],
    {
      grouping,
      ledger,
    }: { readonly grouping: StartRunOptions["grouping"]; readonly ledger: GroupLedger },
  ): { readonly end: RunResult["end"]; readonly planned?: number } {
    if (this.#plan === undefined) return { end };
    const { taskIndexes } = this.#plan;
    const { size, started } = groupingCounts(grouping);
    const isPart = end === "finished" && !ledger.areFinished(taskIndexes.length);
    return {
      end: isPart ? "interrupted" : end,
      // With over-sampling, the number of episodes is not known in advance.
      ...(started === size && { planned: taskIndexes.length * size }),
    };
  }
}

/** Returns the plan in `run.json`; `undefined` if it is open. */
function planIn({ found }: RunManifest): PlanRecord | undefined {
  const plan: unknown = isObject(found) ? found["plan"] : undefined;
  if (!isObject(plan) || !Array.isArray(plan["taskIndexes"])) return undefined;
  const isComplete =
    Number.isSafeInteger(plan["sampleCount"]) && Number.isSafeInteger(plan["seed"]);
  return isComplete ? (plan as unknown as PlanRecord) : undefined;
}

/**
 * True if a run may play the plan, as far as its options show: the environment, the number of attempts and the seeds are
 * the same, there are not more groups, and all finished attempts were planned. A run with fewer groups may play a part
 * of the plan. Each of its groups is compared with the plan before it is played.
 */
function mayBePlanned(
  plan: PlanRecord,
  { source, grouping, seed = 0, setup }: StartRunOptions,
  { finished }: Pick<RunFolder, "finished">,
): boolean {
  const { environment, groupId, taskIndexes, sampleCount } = plan;
  const { size, started } = groupingCounts(grouping);
  const { length = 0 } = source;
  const known = new Set(taskIndexes);
  return (
    environment === setup.environment.name &&
    length <= taskIndexes.length &&
    (sampleCount === size || sampleCount === started) &&
    // The attempts of a fork take their seeds from the episode that they continue.
    (groupId !== undefined || seed === plan.seed) &&
    finished.every((row) => known.has(row.taskIndex) && wasPlanned(plan, row))
  );
}

/** True if a finished attempt has the group index and the rollout id that the plan gives to its task. */
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

/** True if the plan has this group at its index. */
function isPlanned(
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
