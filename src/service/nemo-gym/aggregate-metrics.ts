import { ServiceError } from "../service-error.ts";
import { mean } from "../../values/sum.ts";

interface Scored {
  readonly reward: number;
  readonly _ng_task_index?: number;
}

/**
 * Computes the metrics that NeMo Gym requests from an agent: the mean reward over all collected
 * rollouts and per task.
 * **Source:** NVIDIA-NeMo/Gym nemo_gym/config_types.py (`AggregateMetrics`), 0.7.0.
 * @throws ServiceError `bad-request` for rollouts without rewards.
 */
export function aggregateMetrics(body: object): object {
  const { verify_responses: all } = body as { readonly verify_responses?: unknown };
  if (!Array.isArray(all) || !all.every((one) => isScored(one))) {
    const message =
      '"verify_responses" is missing or wrong: expected a list of objects with a "reward"';
    throw new ServiceError("bad-request", message);
  }
  const byTask = new Map<number | undefined, number[]>();
  for (const { reward, _ng_task_index: task } of all as readonly Scored[]) {
    const rewards = byTask.get(task);
    if (rewards === undefined) byTask.set(task, [reward]);
    else rewards.push(reward);
  }
  const overall = all.length === 0 ? {} : { "mean/reward": mean([...byTask.values()].flat()) };
  return {
    group_level_metrics: Array.from(byTask, ([task, rewards]) => ({
      ...(task !== undefined && { _ng_task_index: task }),
      "mean/reward": mean(rewards),
    })),
    agent_metrics: overall,
    key_metrics: overall,
  };
}

function isScored(value: unknown): boolean {
  return typeof (value as Partial<Scored> | null)?.reward === "number";
}
