import { systemClock } from "../async/clock.ts";
import { watchEngine, type EngineNews } from "./policy/engine-watch.ts";
import type { EngineGate } from "./schedule/admission.ts";
import { openLoadGate } from "./schedule/load-gate.ts";
import type { RunPlan } from "./schedule/plan-run.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import type { RunResult } from "./live-run.ts";
import { startRun } from "./start-run.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { planSource, type TaskSource } from "./schedule/task-source.ts";

export type { RunResult } from "./live-run.ts";

/** How a plan is carried out. */
export interface RunOptions extends Pick<
  StartRunOptions,
  "setup" | "redactor" | "player" | "onProgress" | "onEpisode"
> {
  readonly plan: RunPlan;
  readonly folder: RunFolder;
  /** Where the tasks come from instead of the plan, which then says how large groups are. */
  readonly source?: TaskSource;
  /** Episodes played at once. At least 1. */
  readonly concurrency: number;
  /** Whether fewer are played at once while the engine is full. Default false. */
  readonly followLoad?: boolean;
  /** See `GroupingOptions`. */
  readonly branchAt?: readonly number[];
  /** How often an episode is played before its failure is final. At least 1. */
  readonly attempts: number;
  /** See `StartRunOptions`. */
  readonly maxFailuresInRow: number;
  readonly signal: AbortSignal;
  /** The model's name in traces. */
  readonly model?: string;
  /** Told once how to see who waits to be admitted; never where the engine's load is not followed. */
  readonly onAdmission?: (state: () => EngineGate["state"]) => void;
  /** Told of outages of the engine; `events.jsonl` tells of them as well. */
  readonly onEngine?: (news: EngineNews) => void;
}

/**
 * Plays the episodes of a plan that are not finished yet, a bounded number at once, and journals
 * each as it ends. An abort leaves the unfinished ones for the next start, which goes on with them.
 *
 * @throws UsageError where the disk refuses an episode, after the others were stopped; what was
 *   finished before is kept.
 * @throws whatever `playEpisode()` throws on our own bugs, after the other episodes were stopped.
 */
export async function runRollouts(options: RunOptions): Promise<RunResult> {
  const {
    attempts,
    branchAt,
    concurrency,
    followLoad = false,
    plan,
    onEngine,
    onAdmission,
    model,
    ...rest
  } = options;
  const { folder, setup } = options;
  const { sampleCount, seed } = plan.scope;
  await using gate = openLoadGate(setup, { concurrency, followLoad });
  if (gate !== undefined) onAdmission?.(() => gate.state);
  await using watch = watchEngine(setup.engine, {
    clock: setup.clock ?? systemClock,
    onNews: (news) => {
      onEngine?.(news);
      // A disk that refuses this refuses the next episode, too, and that ends the run.
      folder.writeEvent({ ...news, atMs: setup.now() }).catch(() => {});
    },
  });
  const { traceSetup } = await import("./run-tracer.ts");
  const run = startRun({
    source: planSource(plan),
    ...rest,
    setup: traceSetup({ ...setup, engine: watch.engine }, model),
    grouping: { size: sampleCount, attempts, ...(branchAt && { branchAt }) },
    admission: { concurrency, ...(gate && { gate }) },
    seed,
  });
  for await (const _ of run) {
    // What the run writes is all that is asked for.
  }
  return await run.result;
}
