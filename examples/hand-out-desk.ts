import { advantages, createEndlessTasks, rewardsOf, rollout } from "turnwright";

/** The settings that workers are started with as well: `--queue`, `--shared`, `--env`, `--url` and `--model`. */
export interface Shared {
  readonly queue: string;
  readonly shared: string;
  /** The path of a module, because an object cannot travel to workers. */
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
  const run = rollout({
    ...options,
    onQueue: console.error,
    samples: 4,
    source: (desk) => createEndlessTasks(desk, { split: "test", taskIndexes: [0, 1], seed: 0 }),
    staleness: { max: 1, beyond: "drop" },
  });
  let version = 0;
  run.announcePolicy(version);
  for await (const group of run) {
    const values = advantages(rewardsOf(group), "grpo");
    const rows = group.episodes.flatMap(({ samples }, index) => {
      const advantage = values[index];
      return advantage === undefined ? [] : samples.map((row) => ({ ...row, advantage }));
    });
    version += 1;
    // No worker samples while `train` runs.
    await run.updatePolicy(version, async () => await train(rows), "interrupt");
    if (version === steps) break;
  }
}
