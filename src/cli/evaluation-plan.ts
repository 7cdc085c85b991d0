import { takeTurn } from "../async/take-turn.ts";
import type { EvaluationPlan } from "../report/evaluation-tally.ts";
import type { ReportTerms } from "./eval-settings.ts";
import type { RunPlan } from "../run/schedule/plan-run.ts";

/** Returns the evaluation plan of a run. Makes each task, with pauses for other work. */
export async function planEvaluation(
  environment: string,
  plan: RunPlan,
  terms: ReportTerms,
): Promise<EvaluationPlan> {
  const { split, sampleCount, taskIndexes } = plan.scope;
  const tasks: { readonly taskId: string; readonly taskIndex: number }[] = [];
  for (const [groupIndex, taskIndex] of taskIndexes.entries()) {
    await takeTurn();
    tasks.push({ taskId: plan.at(groupIndex * sampleCount).task.id, taskIndex });
  }
  return {
    environment,
    split,
    tasks,
    trialCount: sampleCount,
    ...terms,
  };
}
