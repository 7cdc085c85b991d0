/** The attempts at one task, as a comparison reads them. */
export interface TaskRewards {
  /** Its number alone in a results file. */
  readonly taskId: string;
  /** Within its split. */
  readonly taskIndex: number;
  /** Rewards of the scored attempts. */
  readonly rewards: readonly number[];
  readonly unscoredCount: number;
}

/** An attempt, as a comparison reads it. */
export interface ResultEntry extends Pick<TaskRewards, "taskId" | "taskIndex"> {
  /** Absent if the attempt is unscored. */
  readonly reward?: number | undefined;
}

/** Adds an attempt to those at its task. */
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
