import { advantages, createEndlessTasks, createSpreadFilter, rewardsOf, rollout } from "turnwright";
import { createStorefront, createStorefrontUser } from "turnwright/environments/storefront";

/** The part of a row that a trainer needs. The policy's own tokens are those with mask 1. */
export interface Row {
  readonly tokenIds: readonly number[];
  readonly lossMask: readonly number[];
  readonly logprobs: readonly number[];
  readonly advantage: number;
}

/** Trains for `steps` steps on groups of four attempts; `train` is yours, and updates the engine's weights. */
export async function trainOnGroups(
  { url, modelDir, steps }: { url: string; modelDir: string; steps: number },
  train: (rows: readonly Row[]) => Promise<void>,
): Promise<number> {
  const run = rollout({
    environment: createStorefront(),
    user: createStorefrontUser(),
    url,
    model: modelDir,
    samples: 4,
    source: (shop) =>
      createEndlessTasks(shop, { split: "train", taskIndexes: [0, 1, 2, 3, 4], seed: 0 }),
    // A group in which all rewards are equal teaches nothing. It is not yielded.
    grouping: { keep: createSpreadFilter() },
    concurrency: 64,
    admission: { ahead: 2 },
    staleness: { max: 1, beyond: "drop" },
  });
  let version = 1;
  run.announcePolicy(version);
  for await (const group of run) {
    const values = advantages(rewardsOf(group), "grpo");
    const rows = group.episodes.flatMap(({ samples }, index) => {
      const advantage = values[index];
      if (advantage === undefined) return [];
      return samples.map(({ tokenIds, lossMask, logprobs }) => {
        return { tokenIds, lossMask, logprobs, advantage };
      });
    });
    version += 1;
    await run.updatePolicy(version, async () => await train(rows), "interrupt");
    if (version > steps) break;
  }
  return version - 1;
}
