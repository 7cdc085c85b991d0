import { UsageError } from "../errors.ts";
import type { Evaluation } from "../report/evaluation.ts";
import { evaluateRun } from "../report/evaluate-run.ts";
import type { EvaluationPlan, PolicyPrices } from "../report/evaluation-tally.ts";
import { numberTrials } from "../report/number-trials.ts";
import { isOpenRun, planOpenRun } from "../report/open-run-plan.ts";
import { openStoredRun, type StoredRun } from "../report/read-run.ts";
import type { PlanRecord } from "../run/schedule/plan-run.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import type { Sample } from "../trajectory/sample.ts";

/** A run's folder, opened for reading. The run may be unfinished. */
export interface ReadRun {
  readonly dir: string;
  readonly manifest: RunManifest;
  /** Reads the finished episodes, in the order in which they ended. */
  episodes(): AsyncGenerator<EpisodeRow, void, undefined>;
  /**
   * Reads the training rows of the finished episodes. Rows of episodes that are still being written, or that a crash
   * cut off, are left out.
   */
  samples(): AsyncGenerator<Sample, void, undefined>;
  /** Reads the training rows of one rollout; yields nothing if it is not finished. */
  samplesOf(rolloutId: string): AsyncGenerator<Sample, void, undefined>;
  /** Evaluates the policy over the finished episodes. */
  evaluation(options?: { readonly prices?: PolicyPrices }): Promise<Evaluation>;
}

/**
 * Opens a run's folder for reading. Locks nothing, so that the run can continue.
 *
 * @throws UsageError if it is not a run's folder, and, while reading, if a line is broken.
 */
export async function readRun(dir: string): Promise<ReadRun> {
  const run = await openStoredRun(dir);
  return {
    dir,
    manifest: run.manifest,
    episodes: () => run.rows(),
    samples: () => run.samples(),
    samplesOf: (rolloutId) => run.samplesOf(rolloutId),
    async evaluation({ prices } = {}) {
      const plan = isOpenRun(run) ? await planOpenRun(run) : await planOf(run);
      const trials = await numberTrials(run);
      const priced = { ...plan, ...(prices !== undefined && { prices }) };
      return await evaluateRun(run, { plan: priced, trials });
    },
  };
}

/**
 * Returns the plan of an evaluation.
 * @throws UsageError if `run.json` has no plan.
 */
async function planOf(run: StoredRun): Promise<EvaluationPlan> {
  const plan = run.manifest.found["plan"] as Partial<PlanRecord> | undefined;
  if (!Array.isArray(plan?.taskIndexes)) {
    throw new UsageError(
      `Cannot evaluate ${run.dir}: its run.json does not say which tasks were planned`,
    );
  }
  const { environment, split, taskIndexes, sampleCount } = plan as PlanRecord;
  // Only an episode has its task's id. A task without episodes gets the usual form of an id.
  const taskIds = new Map(taskIndexes.map((index) => [index, `${environment}/${split}/${index}`]));
  for await (const { taskIndex, taskId } of run.rows()) {
    if (taskIds.has(taskIndex)) taskIds.set(taskIndex, taskId);
  }
  const tasks = Array.from(taskIds, ([taskIndex, taskId]) => ({ taskId, taskIndex }));
  const isBranching = run.manifest.configuration["branch-at"] !== undefined;
  return { environment, split, tasks, trialCount: sampleCount, isBranching };
}
