import path from "node:path";
import type { Evaluation } from "../report/evaluation.ts";
import { EvaluationTally } from "../report/evaluation-tally.ts";
import { numberedEpisodes, numberTrials } from "../report/number-trials.ts";
import { openStoredRun } from "../report/read-run.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { RunPlan } from "../run/schedule/plan-run.ts";
import { evaluationDefaults } from "../composition/config/evaluation-settings.ts";
import { openParts } from "./open-parts.ts";
import { playPlan } from "./play-plan.ts";
import { settingsOf, type RolloutOptions } from "./rollout-options.ts";

/**
 * What is measured. Whatever is left out is as with `turnwright eval`: the temperature is 0. Passes and branches, which
 * it does not have, are refused.
 */
export interface EvaluateOptions extends Omit<
  RolloutOptions,
  "epochs" | "groups" | "branch-at" | "branchAt"
> {
  /** Attempts at each task; as `samples`. Default 1. */
  readonly trials?: number;
  /** US dollars per million tokens of the policy. */
  readonly prices?: { readonly inputUsd: number; readonly outputUsd: number };
}

/**
 * Plays each task as often as asked and says how good the policy is: average reward, pass^k, pass@k, what
 * went wrong and what it cost. With `out` it goes on in that folder, and counts what is there already.
 *
 * @throws UsageError and RolloutError as `rollout()` does, and UsageError for what an evaluation does not have.
 */
export async function evaluate({
  trials,
  prices,
  ...options
}: EvaluateOptions): Promise<Evaluation> {
  const defaults = evaluationDefaults(settingsOf(options));
  const samples = trials === undefined ? {} : { samples: trials };
  await using parts = await openParts({ ...options, ...defaults, ...samples });
  const { plan, setup, conduct } = parts;
  // Whoever plays may change the working directory meanwhile.
  const dir = conduct.dir === undefined ? undefined : path.resolve(conduct.dir);
  const tally = new EvaluationTally({
    environment: setup.environment.name,
    split: plan.scope.split,
    tasks: await listTasks(plan),
    trialCount: plan.scope.sampleCount,
    ...(prices !== undefined && { prices }),
  });
  for await (const { segments: _ids, ...episode } of playPlan(parts, options)) {
    if (dir !== undefined) continue;
    tally.add({ row: { ...episode, sampleHashes: [] }, trial: episode.sampleIndex });
  }
  if (dir !== undefined) {
    const run = await openStoredRun(dir);
    for await (const each of numberedEpisodes(run, await numberTrials(run))) tally.add(each);
  }
  return tally.evaluation();
}

async function listTasks(plan: RunPlan) {
  const tasks: { readonly taskId: string; readonly taskIndex: number }[] = [];
  for (const [groupIndex, taskIndex] of plan.scope.taskIndexes.entries()) {
    await takeTurn();
    tasks.push({ taskId: plan.at(groupIndex * plan.scope.sampleCount).task.id, taskIndex });
  }
  return tasks;
}
