import path from "node:path";
import type { Episode } from "../episode/episode.ts";
import type { Evaluation } from "../report/evaluation.ts";
import { EvaluationTally } from "../report/evaluation-tally.ts";
import { evaluateRun } from "../report/evaluate-run.ts";
import { numberTrials } from "../report/number-trials.ts";
import { openStoredRun } from "../report/read-run.ts";
import { countRows } from "../report/rows/counted-row.ts";
import { takeTurn } from "../async/take-turn.ts";
import type { RunPlan } from "../run/schedule/plan-run.ts";
import { evaluationDefaults } from "../composition/config/evaluation-settings.ts";
import { openParts } from "./open-parts.ts";
import { playGroups } from "./play-groups.ts";
import { settingsOf, type RolloutOptions } from "./rollout-options.ts";

/**
 * The settings and parts of an evaluation. Defaults are those of `turnwright eval`: the temperature is 0. An evaluation
 * has no epochs, branches or sources.
 */
export interface EvaluateOptions extends Omit<
  RolloutOptions,
  | "epochs"
  | "groups"
  | "branch-at"
  | "branchAt"
  | "source"
  | "grouping"
  | "staleness"
  | "redeliver"
  | "turnAdvantages"
> {
  /** The number of attempts at each task; another name of `samples`. Default 1. */
  readonly trials?: number;
  /** The policy's prices in US dollars per million tokens. */
  readonly prices?: { readonly inputUsd: number; readonly outputUsd: number };
  /** The lowest reward of a success. Default: the environment's own verdict, or the reward 1. */
  readonly successThreshold?: number;
}

/**
 * Plays each task `trials` times and measures the policy: average reward, pass^k, pass@k, failures
 * and cost. With `out` it continues the run in that folder, and includes its finished episodes.
 *
 * @throws UsageError and RolloutError as `rollout()` does, and UsageError for settings that an
 *   evaluation does not have.
 */
export async function evaluate({
  trials,
  prices,
  successThreshold,
  ...options
}: EvaluateOptions): Promise<Evaluation> {
  const defaults = evaluationDefaults(settingsOf(options));
  const samples = trials === undefined ? {} : { samples: trials };
  await using parts = await openParts({ ...options, ...defaults, ...samples });
  const { plan, setup, conduct } = parts;
  // A tool may change the working directory later.
  const dir = conduct.dir === undefined ? undefined : path.resolve(conduct.dir);
  const planned = {
    environment: setup.environment.name,
    split: plan.scope.split,
    tasks: await listTasks(plan),
    trialCount: plan.scope.sampleCount,
    ...(prices !== undefined && { prices }),
    ...(successThreshold !== undefined && { successThreshold }),
  };
  const tally = new EvaluationTally(planned);
  const onEpisode = (episode: Episode): void => {
    const { segments: _ids, ...story } = episode;
    if (dir === undefined) {
      const row = { ...story, sampleHashes: [] };
      tally.add({ row, trial: episode.sampleIndex }, countRows(episode));
    }
    return options.onEpisode?.(episode);
  };
  for await (const _ of playGroups(parts, { ...options, onEpisode }));
  if (dir === undefined) return tally.evaluation();
  const run = await openStoredRun(dir);
  return await evaluateRun(run, { plan: planned, trials: await numberTrials(run) });
}

async function listTasks(plan: RunPlan) {
  const tasks: { readonly taskId: string; readonly taskIndex: number }[] = [];
  for (const [groupIndex, taskIndex] of plan.scope.taskIndexes.entries()) {
    await takeTurn();
    tasks.push({ taskId: plan.at(groupIndex * plan.scope.sampleCount).task.id, taskIndex });
  }
  return tasks;
}
