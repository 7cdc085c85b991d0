import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
// Not from the index: the bundled index contains these modules too, so they would be loaded twice.
import { loadTauBenchBundle } from "../environments/tau-bench/bundle.ts";
import { createTauRetail } from "../environments/tau-bench/retail/create-tau-retail.ts";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import { createSglangEngine } from "../src/engine/sglang/sglang-engine.ts";
import { defaultLimits } from "../src/episode/limits.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import { planRun, type RunPlan } from "../src/run/schedule/plan-run.ts";
import { findBundle } from "../src/composition/environment/environments.ts";
import { createUser } from "../src/user/create-user.ts";
import { qwen3Folder } from "./bench-model.ts";
import { writeSeedScript } from "./seed/seed-script.ts";
import { startSeedServer } from "./seed/seed-servers.ts";
import type { StorefrontPlay } from "./storefront-play.ts";

/** τ-bench retail over loopback HTTP. */
export interface LoopbackPlay {
  readonly setup: StorefrontPlay["setup"];
  /** A temporary folder, removed at the end. */
  readonly folder: string;
  /** The address of the server that imitates SGLang. */
  readonly engineUrl: string;
  /** The number of attempts, over 32 tasks. */
  readonly planOf: (count: number) => RunPlan;
}

/**
 * Prepares τ-bench retail with the Qwen3 tokenizer. The engine and the user's model are separate
 * processes. Removes everything after `measure`. Returns `undefined` if the tasks are not available.
 */
export async function withLoopback<Result>(
  measure: (play: LoopbackPlay) => Promise<Result>,
): Promise<Result | undefined> {
  const bundleDir = await findBundle();
  if (bundleDir === undefined) return undefined;
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    const scriptFile = path.join(folder, "script.json");
    const renderer = await createRenderer({ modelDir: qwen3Folder() });
    await writeFile(scriptFile, JSON.stringify(await writeSeedScript(renderer.codec)));
    await using engineServer = await startSeedServer(scriptFile);
    await using userServer = await startSeedServer(scriptFile);
    const environment = createTauRetail({
      bundle: await loadTauBenchBundle(bundleDir, { only: ["retail"] }),
    });
    const model = { baseUrl: `${userServer.url}/v1`, model: "user" };
    const user = createUser({ strategy: "llm", model, repair: "none" });
    const parser = findToolCallParser("qwen25");
    const agent = createToolCallingAgent({ parser, toolUsePolicy: toolUsePolicies.many });
    const engine = createSglangEngine({ url: engineServer.url, mode: "direct" });
    const now = (): number => Date.now();
    const limits = defaultLimits;
    const setup = { environment, user, engine, renderer, agent, sampling: {}, limits, now };
    const planOf = (count: number): RunPlan =>
      planRun(environment, {
        split: "test",
        taskIndexes: Array.from({ length: 32 }, (_, index) => index),
        sampleCount: count / 32,
        seed: 0,
      });
    try {
      return await measure({ setup, folder, engineUrl: engineServer.url, planOf });
    } finally {
      await engine.close();
      await user.close?.();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}
