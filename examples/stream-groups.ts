import { advantages, endlessTasks, rewardSpread, rewardsOf } from "turnwright";
import { toolCallingAgent, toolUsePolicies } from "turnwright/agent";
import { createSglangEngine } from "turnwright/engine";
import { defaultLimits } from "turnwright/episode";
import { findToolCallParser } from "turnwright/parser";
import { createRenderer } from "turnwright/renderer";
import { startRun } from "turnwright/run";
import { createStorefront, storefrontUser } from "turnwright/environments/storefront";

/** What a trainer takes of a row: the policy's own tokens are those where the mask is 1. */
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
  const environment = createStorefront();
  const engine = createSglangEngine({ url });
  const run = startRun({
    source: endlessTasks(environment, { split: "train", taskIndexes: [0, 1, 2, 3, 4], seed: 0 }),
    setup: {
      environment,
      user: storefrontUser(),
      engine,
      renderer: await createRenderer({ modelDir }),
      agent: toolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: { temperature: 1 },
      limits: defaultLimits,
      now: Date.now,
    },
    grouping: { size: 4, keep: rewardSpread() },
    admission: { concurrency: 64, ahead: 2 },
    staleness: { max: 1, beyond: "drop" },
  });
  let version = 1;
  run.announcePolicy(version);
  for await (const group of run) {
    const [...values] = advantages(rewardsOf(group), "grpo");
    const rows = group.episodes.flatMap(({ segments }, index) => {
      const advantage = values[index];
      if (advantage === undefined) return [];
      return segments.map(({ tokenIds, lossMask, logprobs }) => {
        return { tokenIds, lossMask, logprobs, advantage };
      });
    });
    version += 1;
    await run.updatePolicy(version, async () => await train(rows), "interrupt");
    if (version > steps) break;
  }
  await engine.close();
  // Where everything fails the loop ends, too.
  const { end, progress } = await run.result;
  if (end === "too-many-failures") throw new Error(`Cannot go on: ${progress.firstFailure}`);
  return version - 1;
}
