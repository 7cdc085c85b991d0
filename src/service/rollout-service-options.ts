import type { Engine, SamplingParameters } from "../engine/engine.ts";
import type { Clock } from "../async/clock.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { KnownPolicy } from "../queue/run/policy-state.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { RecordPolicy } from "../run/recording/read-recording.ts";
import type { RunManifest } from "../run/folder/run-folder.ts";
import type { LockOptions } from "../run/disk/lock-options.ts";
import type { StartRunOptions } from "../run/start-run-options.ts";
import type { Takers } from "./batch-taker.ts";
import type { RemoteSampling } from "./policy-control.ts";
import type { WeightControl } from "./policy-weights.ts";

/** What a service plays with, and where it keeps what it accepted. */
export interface RolloutServiceOptions {
  /** The data folder: one process at a time; the next start on it goes on. */
  readonly dir: string;
  readonly setup: StartRunOptions["setup"];
  /** What the folders of all batches say in `run.json`. */
  readonly manifest: RunManifest;
  /** Attempts at once, over all batches. */
  readonly concurrency: number;
  /** Plays of an attempt before its failure is final. */
  readonly attempts: number;
  /** Attempts that may be accepted and unfinished. */
  readonly maxQueued: number;
  readonly record?: RecordPolicy;
  readonly redactor?: Redactor;
  /** How the engine's weights are changed. Absent where it cannot be told to. */
  readonly weights?: WeightControl;
  /** Engines of the same policy that batches may name, by address; none where absent. The caller closes them. */
  readonly batchEngines?: ReadonlyMap<string, Engine>;
  /** Who is given groups by another way than `/v1/groups`. */
  readonly takers?: Takers;
  readonly lock?: Omit<LockOptions, "files">;
  readonly clock?: Clock;
  /** Told, for people, of a batch that fails, or waits for another start. Default: a warning of the process. */
  readonly onTrouble?: (text: string) => void;
  /**
   * Opens the way to those who play elsewhere, once the folder is this process's: `policy` is what they keep to from
   * the first moment. Default: this process plays.
   */
  readonly openRemote?: (policy: KnownPolicy) => Promise<RemotePlayers>;
}

/** Those who play the attempts of batches elsewhere. */
export interface RemotePlayers extends AsyncDisposable {
  readonly policy: RemoteSampling;
  /** `name` parts rollouts of one name; `deadlineAtMs` is in milliseconds since the epoch. */
  player(scope: {
    readonly name: string;
    readonly sampling: SamplingParameters;
    readonly deadlineAtMs?: number;
  }): AttemptPlayer;
}

/** Which groups are safe with a caller. */
export interface Acknowledgement {
  /** Up to this one; absent: all of a batch that has ended. */
  readonly cursor?: number;
  /** Of this one alone. */
  readonly batch?: string;
}

/** How the service is. JSON-able. */
export interface ServiceHealth {
  readonly state: "running" | "paused" | "stopping";
  readonly environment: string;
  readonly policyVersion: number | null;
  readonly batches: number;
  readonly queuedAttempts: number;
  readonly runningAttempts: number;
  readonly unreadGroups: number;
}
