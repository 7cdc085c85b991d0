import { systemClock } from "../async/clock.ts";
import { watchEngine, type EngineOutage } from "./policy/engine-watch.ts";
import type { EngineGate } from "./schedule/admission.ts";
import { openLoadGate } from "./schedule/load-gate.ts";
import type { RunPlan } from "./schedule/plan-run.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import type { RunResult } from "./live-run.ts";
import { startRun } from "./start-run.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { createPlanSource, type TaskSource } from "./schedule/task-source.ts";

export type { RunResult } from "./live-run.ts";

/** Options for playing a plan. */
export interface RunOptions extends Pick<
  StartRunOptions,
  "setup" | "redactor" | "player" | "onProgress" | "onEpisode" | "keepsEpisodes"
> {
  readonly plan: RunPlan;
  readonly folder: RunFolder;
  /** The source of tasks. Default: the plan. With a source, the plan only gives the size of groups. */
  readonly source?: TaskSource;
  /** The maximum number of concurrent episodes. At least 1. */
  readonly concurrency: number;
  /** True to play fewer episodes at the same time while the engine is full. Default false. */
  readonly followLoad?: boolean;
  /** See `GroupingOptions`. */
  readonly branchAt?: readonly number[];
  /** The maximum number of plays of an attempt. The failure of the last one is final. At least 1. */
  readonly attempts: number;
  /** See `StartRunOptions`. */
  readonly maxFailuresInRow: number;
  readonly signal: AbortSignal;
  /** The model's name in traces. */
  readonly model?: string;
  /**
   * Called once with a function that returns the state of the admission gate; never if the engine's load is not
   * followed.
   */
  readonly onAdmission?: (state: () => EngineGate["state"]) => void;
  /** Called for outages of the engine, which are also written to `events.jsonl`. */
  readonly onEngine?: (outage: EngineOutage) => void;
}

/**
 * Plays the unfinished episodes of a plan, a bounded number at the same time, and writes each when it ends. After an
 * abort, the next start resumes the unfinished ones.
 *
 * @throws UsageError if the disk fails, after the other episodes were stopped; finished episodes are kept.
 * @throws an `AssertionError` of `playEpisode()`, after the other episodes were stopped.
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
    onOutage: (outage) => {
      onEngine?.(outage);
      // If the disk refuses this event, it also refuses the next episode, and that ends the run.
      folder.writeEvent({ ...outage, atMs: setup.now() }).catch(() => {});
    },
  });
  const { traceSetup } = await import("./run-tracer.ts");
  const run = startRun({
    source: createPlanSource(plan),
    ...rest,
    setup: traceSetup({ ...setup, engine: watch.engine }, model),
    grouping: { size: sampleCount, attempts, ...(branchAt && { branchAt }) },
    admission: { concurrency, ...(gate && { gate }) },
    seed,
  });
  for await (const _ of run) {
    // Groups are not needed: the run writes its episodes to the folder.
  }
  return await run.result;
}
