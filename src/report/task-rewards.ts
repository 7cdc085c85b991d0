/** The rewards of one task, for a comparison. */
export interface TaskRewards {
  /** The task's id. From a results file, only its number. */
  readonly taskId: string;
  /** The task's index within its split. */
  readonly taskIndex: number;
  /** Rewards of the scored attempts. */
  readonly rewards: readonly number[];
  readonly unscoredCount: number;
}

/** An attempt with the facts that a comparison needs. */
export interface ResultEntry extends Pick<TaskRewards, "taskId" | "taskIndex"> {
  /** The attempt's reward. Absent or `undefined` if the attempt is unscored. */
  readonly reward?: number | undefined;
}

/** Adds an attempt's result to its task. */
export function addResult(
  tasks: Map<string, TaskRewards>,
  { taskIndex, taskId, reward }: ResultEntry,
): void {
  const { rewards, unscoredCount } = tasks.get(taskId) ?? { rewards: [], unscoredCount: 0 };
  tasks.set(taskId, {
    taskId,
    taskIndex,
    rewards: reward === undefined ? rewards : [...rewards, reward],
    unscoredCount: unscoredCount + (reward === undefined ? 1 : 0),
  });
}
