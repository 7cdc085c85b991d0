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

/** The parts of a service, and its data folder. */
export interface RolloutServiceOptions {
  /** The data folder. One process can use it at a time. The next start resumes its work. */
  readonly dir: string;
  readonly setup: StartRunOptions["setup"];
  /** The part of `run.json` that all batches share. */
  readonly manifest: RunManifest;
  /** Attempts at once, over all batches. */
  readonly concurrency: number;
  /** Plays of an attempt before its failure is final. */
  readonly attempts: number;
  /** Attempts that may be accepted and unfinished. */
  readonly maxQueued: number;
  readonly record?: RecordPolicy;
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

/** The service's health. JSON-able. */
export interface ServiceHealth {
  readonly state: "running" | "paused" | "stopping";
  readonly environment: string;
  readonly policyVersion: number | null;
  readonly batches: number;
  readonly queuedAttempts: number;
  readonly runningAttempts: number;
  readonly unreadGroups: number;
}
