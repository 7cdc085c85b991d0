import { advantages, endlessTasks, handOut, rewardsOf } from "turnwright";
import { startRun } from "turnwright/run";

/** What workers are started with as well, as `--queue`, `--shared`, `--env`, `--url` and `--model`. */
export interface Shared {
  readonly queue: string;
  readonly shared: string;
  /** A module's path: an object would not travel. */
  readonly environment: string;
  readonly url: string;
  readonly model: string;
}

/** Trains for `steps` steps on groups of four attempts that workers play; `train` updates the weights. */
export async function trainByQueue(
  options: Shared & { readonly out: string },
  steps: number,
  train: (rows: readonly { tokenIds: readonly number[]; advantage: number }[]) => Promise<void>,
): Promise<void> {
  await using handedOut = await handOut({ ...options, onQueue: console.error });
  const { environment } = handedOut.setup;
  const run = startRun({
    ...handedOut,
    source: endlessTasks(environment, { split: "test", taskIndexes: [0, 1], seed: 0 }),
    grouping: { size: 4 },
    staleness: { max: 1, beyond: "drop" },
  });
  let version = 0;
  run.announcePolicy(version);
  for await (const group of run) {
    const values = advantages(rewardsOf(group), "grpo");
    const rows = group.episodes.flatMap(({ segments }, index) => {
      const advantage = values[index];
      return advantage === undefined ? [] : segments.map((row) => ({ ...row, advantage }));
    });
    version += 1;
    // No worker samples while `train` goes on.
    await run.updatePolicy(version, async () => await train(rows), "interrupt");
    if (version === steps) break;
  }
}
