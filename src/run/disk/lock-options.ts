import type { Clock } from "../../async/clock.ts";
import type { Files } from "./files.ts";
import type { Machine } from "./process-place.ts";

/** Options of a folder's lock. */
export interface LockOptions {
  readonly files?: Files;
  readonly machine?: Machine;
  /**
   * The time for which a holder counts as running without a heartbeat, in milliseconds, if it is on another machine,
   * from before a reboot, or on a system without a boot id. Default: two minutes.
   */
  readonly leaseMs?: number;
  /** The time between two heartbeats, in milliseconds. Default: ten seconds. */
  readonly heartbeatMs?: number;
  /** Returns milliseconds since the epoch. Default: the machine's clock. */
  readonly now?: () => number;
  readonly sleep?: Clock["sleep"];
  /**
   * The command of this process, as other processes print it. Default: the script's name, without arguments, which may
   * contain API keys.
   */
  readonly command?: string;
  readonly signal?: AbortSignal;
  /** Called with the reason if taking the lock has to wait. */
  readonly onWait?: (why: string) => void;
}
