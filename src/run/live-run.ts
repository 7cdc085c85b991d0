import type { SlimeSummary } from "./slime/slime-file.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import type { UpdateMode } from "./policy/policy-gate.ts";
import type { RunProgress } from "./run-progress.ts";

/** The end of a run. */
export interface RunResult {
  readonly progress: RunProgress;
  /** `finished`: all groups of the source are complete. The other runs can be resumed. */
  readonly end: "finished" | "interrupted" | "too-many-failures";
  /** The content of the slime file. Absent if the run does not write one. */
  readonly slime?: SlimeSummary;
}

/** A running run: iterates over its groups as they end, and controls it. */
export interface LiveRun extends AsyncIterable<EpisodeGroup> {
  /** Resolves with the end of the run. Rejects like the iteration. */
  readonly result: Promise<RunResult>;
  progress(): RunProgress;
  /**
   * Announces the version of the policy's weights from now on. Tokens to which the engine gives no whole-number version
   * get the announced one.
   */
  announcePolicy(version: number): void;
  /**
   * Changes the policy's weights while episodes are played (see `UpdateMode`). If that fails, nothing is sampled until
   * another update succeeds, or `resume()` is called.
   *
   * @param update - Changes the weights, for example with a call to the engine.
   * @throws UsageError if the version is not a whole number, or if `update` throws, with that error as its cause.
   */
  updatePolicy(version: number, update: () => Promise<void>, mode?: UpdateMode): Promise<void>;
  /** Blocks sampling until `resume()`. The default mode is `hold`. */
  pause(mode?: Exclude<UpdateMode, "finish">): Promise<void>;
  resume(): void;
  /**
   * Starts no further attempts, and ends running episodes as `aborted`. The next start resumes them. Does not unblock a
   * paused policy. Resolves when the run has ended.
   */
  interrupt(): Promise<RunResult>;
}
