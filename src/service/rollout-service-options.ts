import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { Engine, SamplingParameters } from "../engine/engine.ts";
import type { Clock } from "../async/clock.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { KnownPolicy } from "../queue/run/policy-state.ts";
import type { AttemptPlayer } from "../run/attempt/attempt-player.ts";
import type { RecordPolicy } from "../run/recording/read-recording.ts";
import type { RunManifest } from "../run/folder/run-folder.ts";
import type { LockOptions } from "../run/disk/lock-options.ts";
import type { StartRunOptions } from "../run/start-run-options.ts";
import type { StartDoctor } from "../doctor/live/thread/start-doctor.ts";
import type { Takers } from "./batch-taker.ts";
import type { RemoteSampling } from "./policy-control.ts";
import type { WeightControl } from "./policy-weights.ts";

/** The options of a service: its data folder, the parts that play, and its limits. */
export interface RolloutServiceOptions {
  /** The data folder. One process can use it at a time. The next start resumes its work. */
  readonly dir: string;
  readonly setup: StartRunOptions["setup"];
  /** The part of `run.json` that all batches share. */
  readonly manifest: RunManifest;
  /** Maximum number of concurrent attempts, over all batches. */
  readonly concurrency: number;
  /** The maximum number of plays of an attempt. The failure of the last one is final. */
  readonly attempts: number;
  /** Maximum number of accepted attempts that are unfinished. */
  readonly maxQueued: number;
  readonly record?: RecordPolicy;
  /** True to keep the side columns of acknowledged groups. Default false: their files are removed. */
  readonly keepsColumns?: boolean;
  /** The live diagnosis of a trainer's logprobs. Default: a thread with 262,144 tokens. */
  readonly doctor?: DoctorOptions;
  readonly redactor?: Redactor;
  /** Changes the engine's weights. Absent if the engine cannot load weights. */
  readonly weights?: WeightControl;
  /**
   * Engines of the same policy that batches may name, by address. Default none. The caller closes
   * them.
   */
  readonly batchEngines?: ReadonlyMap<string, Engine>;
  /** Receivers of groups other than the readers of `/v1/groups`. */
  readonly takers?: Takers;
  readonly lock?: Omit<LockOptions, "files">;
  readonly clock?: Clock;
  /**
   * Called with a message for a person if a batch fails, or waits for another start. Default: a
   * process warning.
   */
  readonly onTrouble?: (text: string) => void;
  /**
   * Opens the queue when this process owns the folder. `policy` is the state that the workers
   * follow from the start. Default: this process plays the attempts.
   */
  readonly openRemote?: (policy: KnownPolicy) => Promise<RemotePlayers>;
}

/** The options of the live diagnosis. */
export interface DoctorOptions {
  /** Maximum number of trained tokens in a diagnosis. The newest rows count. */
  readonly tokenLimit?: number;
  /**
   * Maximum number of bytes of acknowledged side columns that are kept for the comparison of routes, once a trainer has
   * posted logprobs. Default 2 GiB.
   */
  readonly columnBytes?: number;
  /** Starts the thread of the doctor. Default: a worker thread. */
  readonly start?: StartDoctor;
}

/** The workers of a queue, which play the attempts of batches. */
export interface RemotePlayers extends AsyncDisposable {
  readonly policy: RemoteSampling;
  /**
   * Returns the player of one batch. `name` separates the batch's rollouts from those of others.
   * `deadlineAtMs` is in milliseconds since the epoch.
   */
  player(scope: {
    readonly name: string;
    readonly sampling: SamplingParameters;
    readonly deadlineAtMs?: number;
  }): AttemptPlayer;
}

/** The groups that a caller has stored. */
export interface Acknowledgement {
  /** The cursor of the last stored group. Absent: all groups of an ended batch. */
  readonly cursor?: number;
  /** The batch of the groups. Absent: all batches. */
  readonly batch?: string;
}

/** The service's health. JSON-able. */
export interface ServiceHealth {
  readonly state: "running" | "paused" | "stopping";
  readonly environment: string;
  readonly policyVersion: number | null;
  readonly batches: number;
  readonly queuedAttempts: number;
  readonly runningAttempts: number;
  readonly unreadGroups: number;
  /** The side columns of all rows. Absent if they have none. */
  readonly columns?: ColumnSpecs;
}
