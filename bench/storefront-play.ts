// Not from the index: the bundled index contains these modules too, so they would be loaded twice.
import { demonstrate } from "../environments/storefront/demonstrate.ts";
import { createStorefront } from "../environments/storefront/storefront.ts";
import { createStorefrontUser } from "../environments/storefront/storefront-user.ts";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import { defaultLimits } from "../src/episode/limits.ts";
import type { EpisodeSetup } from "../src/episode/episode-setup.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import { planRun, type RunPlan } from "../src/run/schedule/plan-run.ts";
import { qwen3Folder } from "./bench-model.ts";
import { instantEngine } from "./instant-engine.ts";

/** Episodes of storefront, played by its expert with the Qwen3 tokenizer. */
export interface StorefrontPlay {
  readonly plan: RunPlan;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
}

/** Prepares `episodeCount` episodes; each policy call takes `latencyMs`. */
export async function prepareStorefront({
  episodeCount,
  latencyMs,
}: {
  readonly episodeCount: number;
  readonly latencyMs: number;
}): Promise<StorefrontPlay> {
  const environment = createStorefront();
  const renderer = await createRenderer({ modelDir: qwen3Folder() });
  const plan = planRun(environment, {
    split: "train",
    taskIndexes: Array.from({ length: episodeCount }, (_, index) => index),
    sampleCount: 1,
    seed: 0,
  });
  const turns = new Map<string, number[][]>();
  for (const { task, seed, rolloutId } of plan) {
    const demonstration = await demonstrate(environment.task("train", task.index), { seed });
    const ids = demonstration.turns.map(({ text }) => renderer.codec.encode(`${text}<|im_end|>`));
    turns.set(rolloutId, await Promise.all(ids));
  }
  const played = new Map<string, number>();
  const engine = instantEngine(
    ({ sessionId }) => {
      const index = played.get(sessionId) ?? 0;
      played.set(sessionId, index + 1);
      return turns.get(sessionId)?.[index] ?? renderer.stopTokenIds;
    },
    { latencyMs },
  );
  return {
    plan,
    setup: {
      environment,
      user: createStorefrontUser(),
      engine,
      renderer,
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: {},
      limits: defaultLimits,
      now: () => Date.now(),
    },
  };
}
