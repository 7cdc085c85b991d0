import { requireIds, workersNeedIds } from "../../composition/config/chat-config.ts";
import { UsageError } from "../../errors.ts";
import { runSettings, readRunConfig, type RunConfig } from "../../composition/config/run-config.ts";
import {
  completeSettings,
  text,
  type GivenSettings,
  type Setting,
} from "../../composition/config/setting.ts";
import { queueSettings, readQueueConfig, type QueueConfig } from "../queue-settings.ts";

const ownSettings = [
  {
    name: "name",
    kind: text,
    value: "name",
    help: "name of the worker; a random part is appended (default: the machine's name)",
    operational: true,
  },
  {
    name: "lease",
    kind: { type: "number", min: 1, max: 3_600 },
    value: "seconds",
    help: "time without a heartbeat after which other workers take over its attempts",
    default: 15,
    operational: true,
  },
  {
    name: "drain",
    kind: { type: "number", min: 0, max: 604_800 },
    value: "seconds",
    help: "on SIGTERM, time for running attempts to end before they return to the queue",
    default: 25,
    operational: true,
  },
] as const satisfies readonly Setting[];

/**
 * The settings of `turnwright worker`. They include all settings of a run; those for tasks and
 * files have no effect, because each run has its own.
 */
export const workerSettings: readonly Setting[] = [
  ...runSettings,
  ...queueSettings,
  ...ownSettings,
];

/** The settings of a worker. */
export interface WorkerConfig {
  /**
   * The configuration of the run that the worker joins. Its tasks, sampling and folder are not
   * used, because each run has its own.
   */
  readonly run: RunConfig;
  readonly queue: QueueConfig;
  /** The shared place: a folder, or `s3://bucket/prefix`. */
  readonly shared?: string;
  readonly name?: string;
  readonly leaseMs: number;
  readonly drainMs: number;
}

/**
 * Reads a worker's settings.
 *
 * @throws UsageError for a setting that is unknown, missing or of the wrong type.
 */
export function readWorkerConfig(settings: GivenSettings): WorkerConfig {
  const pick = (table: readonly Setting[]): GivenSettings => {
    const names = new Set(table.map(({ name }) => name));
    return Object.fromEntries(Object.entries(settings).filter(([name]) => names.has(name)));
  };
  const { name, lease, drain } = completeSettings<(typeof ownSettings)[number]>(
    ownSettings,
    pick(ownSettings),
  );
  const queue = readQueueConfig(pick(queueSettings));
  if (queue === undefined) {
    throw new UsageError("Missing --queue: the Valkey or Redis that attempts come from");
  }
  if (name !== undefined && !/^[\w.-]{1,100}$/.test(name)) {
    throw new UsageError(
      `Cannot use --name ${name}: expected up to 100 letters, digits, dots, hyphens`,
    );
  }
  const run = readRunConfig(pick(runSettings));
  requireIds(run.engine, workersNeedIds);
  return {
    run,
    queue,
    leaseMs: lease * 1_000,
    drainMs: drain * 1_000,
    ...(queue.shared !== undefined && { shared: queue.shared }),
    ...(name !== undefined && { name }),
  };
}
