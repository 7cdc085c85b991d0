import type { SlimeSummary } from "./slime/slime-file.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import type { UpdateMode } from "./policy/policy-gate.ts";
import type { RunProgress } from "./run-progress.ts";

/** How a run ended. */
export interface RunResult {
  readonly progress: RunProgress;
  /** `finished`: all groups of the source are on the disk. The others can be resumed. */
  readonly end: "finished" | "interrupted" | "too-many-failures";
  /** What the slime file holds; absent where none is asked for. */
  readonly slime?: SlimeSummary;
}

/** A run that is under way: its groups as they end, and the ways to steer it. */
export interface LiveRun extends AsyncIterable<EpisodeGroup> {
  /** How it ended. Rejects as the iteration does. */
  readonly result: Promise<RunResult>;
  progress(): RunProgress;
  /**
   * Says that the policy's weights are of this version from now on. Tokens carry it for which the engine names no
   * whole number.
   */
  announcePolicy(version: number): void;
  /**
   * Changes the policy's weights while episodes go on: see `UpdateMode`. Where that fails, nothing is sampled
   * until `resume()`, which says that they are sound, or an update that succeeds.
   *
   * @param update - Changes them, such as by a call of the engine's own.
   * @throws UsageError where the version is no whole number, and where `update` throws, which is its cause.
   */
  updatePolicy(version: number, update: () => Promise<void>, mode?: UpdateMode): Promise<void>;
  /** Lets the policy be asked for nothing until `resume()`. Default `hold`. */
  pause(mode?: Exclude<UpdateMode, "finish">): Promise<void>;
  resume(): void;
  /**
   * Begins nothing any more, and ends the episodes that are played as `aborted`, with what they have: the
   * next start goes on with them. A policy that is paused is asked for nothing by that. Resolves when the run
   * has ended.
   */
  interrupt(): Promise<RunResult>;
}
