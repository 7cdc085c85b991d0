import {
  advantages,
  curriculum,
  rewardSpread,
  rewardsOf,
  type RunProgress,
  type RunResult,
} from "turnwright";
import { startMetricsServer } from "turnwright/metrics";
import { RunFolder, startRun, traceSetup, type StartRunOptions } from "turnwright/run";

/** What a trainer takes of a row: ids of older weights than it bears are masked already. */
export interface Row {
  readonly tokenIds: readonly number[];
  readonly lossMask: readonly number[];
  readonly advantage: number;
}

/**
 * Trains on one task until an attempt solves it, then on the next. `train` is yours, and resolves to the
 * version of the new weights; `version` is that of the weights that the engine has before. After `stepCount`
 * groups the run is interrupted; the same call goes on with it, in the middle of its episodes.
 */
export async function climbTasks(
  setup: StartRunOptions["setup"],
  { dir, stepCount, version }: { dir: string; stepCount: number; version: number },
  train: (rows: readonly Row[]) => Promise<number>,
): Promise<RunResult> {
  const { environment } = setup;
  const manifest = {
    format: 1,
    turnwright: "my trainer",
    configuration: { k: 2 },
    found: {},
  } as const;
  await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
  let level = 0;
  const climb = (solved: { readonly taskIndex: number; readonly reward?: number }): void => {
    if (solved.reward === 1) level = Math.max(level, solved.taskIndex + 1);
  };
  for (const earlier of folder.finished) climb(earlier);
  const choose = (groupIndex: number) => {
    if (level >= environment.splits["test"]!) return undefined;
    const task = environment.task("test", level);
    return { task, groupId: `${task.id}~${groupIndex}` };
  };
  // Before the run: where its port is taken, nothing plays yet when the folder is closed.
  let progress: RunProgress | undefined;
  await using metrics = await startMetricsServer({ progress: () => progress }, { port: 0 });
  console.error(`metrics: ${metrics.url}`);
  const run = startRun({
    source: curriculum(choose, ({ episodes, task }) => {
      for (const { reward = 0 } of episodes) climb({ taskIndex: task.index, reward });
    }),
    // Spans for whatever OpenTelemetry SDK is registered.
    setup: traceSetup(setup),
    // Three attempts are begun for a group of two, and groups that teach nothing are kept back.
    grouping: { size: 2, begun: 3, keep: rewardSpread() },
    admission: { concurrency: 3, ahead: 1 },
    // Tokens that are more than one version old leave the loss.
    staleness: { max: 1, beyond: "mask" },
    folder,
    redeliver: true,
    onProgress: (now) => (progress = now),
    // The sums follow from that; how rewards and waits are spread does from each episode.
    onEpisode: (episode) => metrics.observe(episode),
  });
  run.announcePolicy(version);
  let steps = 0;
  for await (const group of run) {
    const values = advantages(rewardsOf(group), "rloo");
    const rows = group.episodes.flatMap(({ segments }, index) => {
      const advantage = values[index];
      // An attempt that failed has none.
      if (advantage === undefined) return [];
      return segments.map(({ tokenIds, lossMask }) => ({ tokenIds, lossMask, advantage }));
    });
    run.announcePolicy(await train(rows));
    steps += 1;
    // What has ended by now is still handed out.
    if (steps === stepCount) void run.interrupt();
  }
  return await run.result;
}
