import type { EvaluationPlan } from "./evaluation-tally.ts";
import type { StoredRun } from "./read-run.ts";

/** True if the run's episodes are not fixed by a plan, as for a gateway. */
export function isOpenRun({ manifest }: StoredRun): boolean {
  const { plan } = manifest.found as { readonly plan?: { readonly isOpen?: unknown } };
  return plan?.isOpen === true;
}

/**
 * Returns the plan for evaluating a run without a fixed plan: its tasks, and the attempts that were
 * played.
 */
export async function planOpenRun(run: StoredRun): Promise<EvaluationPlan> {
  const tasks = new Map<string, { readonly taskIndex: number; count: number }>();
  let place = { environment: "", split: "" };
  for await (const { taskId, taskIndex, environment, split } of run.rows()) {
    place = { environment, split };
    const task = tasks.get(taskId) ?? { taskIndex, count: 0 };
    task.count += 1;
    tasks.set(taskId, task);
  }
  return {
    ...place,
    tasks: [...tasks].map(([taskId, { taskIndex }]) => ({ taskId, taskIndex })),
    trialCount: [...tasks.values()].reduce((most, { count }) => Math.max(most, count), 1),
    isOpen: true,
  };
}
