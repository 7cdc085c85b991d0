import {
  advantages,
  createCurriculum,
  readRun,
  createSpreadFilter,
  rewardsOf,
  rollout,
  type Environment,
  type RolloutOptions,
  type RunProgress,
  type RunResult,
} from "turnwright";
import { startMetricsServer } from "turnwright/metrics";

/** The part of a row that a trainer needs. Ids of weights older than the staleness limit are masked already. */
export interface Row {
  readonly tokenIds: readonly number[];
  readonly lossMask: readonly number[];
  readonly advantage: number;
}

/**
 * Trains on one task until an attempt solves it, then on the next. `train` is yours, and resolves to the
 * version of the new weights; `version` is the version of the engine's weights at the start. After `stepCount`
 * groups the run is interrupted; the same call continues it, in the middle of its episodes.
 */
export async function climbTasks(
  options: RolloutOptions & { readonly environment: Environment },
  { dir, stepCount, version }: { dir: string; stepCount: number; version: number },
  train: (rows: readonly Row[]) => Promise<number>,
): Promise<RunResult> {
  const { environment } = options;
  let level = 0;
  const climb = (solved: { readonly taskIndex: number; readonly reward?: number }): void => {
    if (solved.reward === 1) level = Math.max(level, solved.taskIndex + 1);
  };
  const earlier = await readRun(dir).catch(() => undefined);
  if (earlier !== undefined) for await (const row of earlier.episodes()) climb(row);
  const choose = (groupIndex: number) => {
    if (level >= environment.splits["test"]!) return undefined;
    const task = environment.task("test", level);
    return { task, groupId: `${task.id}~${groupIndex}` };
  };
  let progress: RunProgress | undefined;
  await using metrics = await startMetricsServer({ progress: () => progress }, { port: 0 });
  console.error(`metrics: ${metrics.url}`);
  const run = rollout({
    ...options,
    out: dir,
    redeliver: true,
    source: createCurriculum(choose, ({ episodes, task }) => {
      for (const { reward = 0 } of episodes) climb({ taskIndex: task.index, reward });
    }),
    // Three attempts start for a group of two. A group with equal rewards is not yielded.
    samples: 2,
    grouping: { started: 3, keep: createSpreadFilter() },
    concurrency: 3,
    admission: { ahead: 1 },
    // Tokens that are more than one version old leave the loss.
    staleness: { max: 1, beyond: "mask" },
    onProgress: (now) => (progress = now),
    onEpisode: (episode) => metrics.observe(episode),
  });
  run.announcePolicy(version);
  let steps = 0;
  for await (const group of run) {
    const values = advantages(rewardsOf(group), "rloo");
    const rows = group.episodes.flatMap(({ samples }, index) => {
      const advantage = values[index];
      // A failed attempt has no reward.
      if (advantage === undefined) return [];
      return samples.map(({ tokenIds, lossMask }) => ({ tokenIds, lossMask, advantage }));
    });
    run.announcePolicy(await train(rows));
    steps += 1;
    // Groups that have ended by this time are still yielded.
    if (steps === stepCount) void run.interrupt();
  }
  return await run;
}
