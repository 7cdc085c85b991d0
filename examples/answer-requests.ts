import {
  createPushedTasks,
  rewardsOf,
  rollout,
  type Environment,
  type RolloutOptions,
} from "turnwright";

/** Plays tasks as requests for them arrive; resolves to the mean reward of each request. */
export async function answerRequests(
  options: RolloutOptions & { readonly environment: Environment },
  requests: AsyncIterable<{ readonly taskIndex: number; readonly name: string }>,
): Promise<ReadonlyMap<string, number>> {
  const source = createPushedTasks();
  const pushAll = async (): Promise<void> => {
    for await (const { taskIndex, name } of requests) {
      source.push({ task: options.environment.task("test", taskIndex), groupId: name });
    }
    source.end();
  };
  const pushing = pushAll();
  const means = new Map<string, number>();
  for await (const group of rollout({ ...options, source, samples: 2, concurrency: 8 })) {
    const scored = rewardsOf(group).filter((reward) => reward !== undefined);
    means.set(group.groupId, scored.reduce((sum, reward) => sum + reward, 0) / scored.length);
  }
  await pushing;
  return means;
}
