import type { EvaluationPlan, PolicyPrices } from "../report/evaluation-tally.ts";
import type { PlannedEpisode } from "../run/plan-run.ts";

/** What an evaluation of a plan's episodes is to be. */
export function planEvaluation(
  environment: string,
  plan: readonly PlannedEpisode[],
  prices: PolicyPrices | undefined,
): EvaluationPlan {
  const tasks = new Map(
    plan.map(({ task }) => [task.id, { taskId: task.id, taskIndex: task.index }]),
  );
  return {
    environment,
    split: plan[0]?.task.split ?? "",
    tasks: [...tasks.values()],
    trialCount: tasks.size === 0 ? 0 : plan.length / tasks.size,
    ...(prices === undefined ? {} : { prices }),
  };
}
