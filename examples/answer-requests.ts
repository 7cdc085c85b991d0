import { pushedTasks, rewardsOf } from "turnwright";
import { startRun, type StartRunOptions } from "turnwright/run";

/** Plays tasks as others ask for them; resolves to the mean reward of each that was asked for. */
export async function answerRequests(
  setup: StartRunOptions["setup"],
  requests: AsyncIterable<{ readonly taskIndex: number; readonly name: string }>,
): Promise<ReadonlyMap<string, number>> {
  const source = pushedTasks();
  const run = startRun({
    source,
    setup,
    grouping: { size: 2 },
    admission: { concurrency: 8 },
  });
  const pushAll = async (): Promise<void> => {
    for await (const { taskIndex, name } of requests) {
      source.push({ task: setup.environment.task("test", taskIndex), groupId: name });
    }
    source.end();
  };
  const pushing = pushAll();
  const means = new Map<string, number>();
  for await (const group of run) {
    const scored = rewardsOf(group).filter((reward) => reward !== undefined);
    means.set(group.groupId, scored.reduce((sum, reward) => sum + reward, 0) / scored.length);
  }
  const { end, progress } = await run.result;
  if (end !== "finished") throw new Error(`Cannot answer all (${end}): ${progress.firstFailure}`);
  await pushing;
  return means;
}
