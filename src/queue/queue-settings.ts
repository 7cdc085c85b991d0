import { UsageError } from "../errors.ts";
import { shownUrl } from "../secrets/find-secrets.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import {
  completeSettings,
  text,
  type GivenSettings,
  type Setting,
  type SettingValues,
} from "../composition/config/setting.ts";

/** The settings of a queue. They do not affect the results. */
export const queueSettings = [
  {
    name: "queue",
    kind: text,
    value: "url",
    help: "let workers play attempts, through this Valkey or Redis: redis://…, or rediss://… for TLS",
    operational: true,
  },
  {
    name: "queue-password-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the password to the queue's store",
    operational: true,
  },
  {
    name: "shared",
    kind: text,
    value: "place",
    help: "place for recordings and results above 100 kB: a folder that all workers reach, or s3://bucket/prefix",
    operational: true,
  },
] as const satisfies readonly Setting[];

/** Maximum number of worker processes on one machine. */
const mostWorkers = 1_000;

/** The setting for worker processes on this machine. It does not affect the results. */
export const workersSettings = [
  {
    name: "workers",
    kind: { type: "number", min: 1, max: mostWorkers, whole: true, word: "auto" },
    value: "n",
    help: "processes on this machine that play the episodes, or auto: one for each available core (default: this process plays)",
    operational: true,
  },
] as const satisfies readonly Setting[];

/** The settings for playing attempts in other processes. */
export const handOutSettings = [...workersSettings, ...queueSettings] as const;

/** The default number of attempts that are handed out at the same time. It exceeds the capacity of a few workers. */
export const handedOutAtOnce = 1_024;

/** The addresses of the queue's store and of the shared place. */
export interface QueueConfig {
  /** The store's URL, without a password. */
  readonly url: string;
  readonly passwordEnv?: string;
  /** The shared place: a folder, or `s3://bucket/prefix`. */
  readonly shared?: string;
}

/**
 * The processes that play a run's attempts: worker processes on this machine, or workers of a
 * queue.
 */
export type HandOutConfig =
  | { readonly type: "local"; readonly workers: number | "auto" }
  | { readonly type: "queue"; readonly queue: QueueConfig };

/**
 * Reads the settings for playing attempts in other processes. Returns `undefined` if this process plays the attempts
 * itself.
 * @throws UsageError as `readQueueConfig()` does, and for `workers` together with `queue`.
 */
export function readHandOutConfig(settings: GivenSettings): HandOutConfig | undefined {
  const { workers: given, ...ofQueue } = settings;
  const { workers } = completeSettings<(typeof workersSettings)[number]>(
    workersSettings,
    given === undefined ? {} : { workers: given },
  );
  const queue = readQueueConfig(ofQueue);
  if (workers === undefined) return queue && { type: "queue", queue };
  if (queue === undefined) return { type: "local", workers };
  throw new UsageError(
    "Cannot use --workers with --queue: expected one of the two; workers of a queue are started with " +
      "`turnwright worker`",
  );
}

/**
 * Reads the queue's settings. Returns `undefined` without `queue`.
 * @throws UsageError for an invalid URL, a URL with a password, or settings that need `queue`.
 */
export function readQueueConfig(settings: GivenSettings): QueueConfig | undefined {
  const values: SettingValues<(typeof queueSettings)[number]> = completeSettings(
    queueSettings,
    settings,
  );
  const { queue: url, "queue-password-env": passwordEnv, shared } = values;
  if (url === undefined) {
    for (const [name, value] of Object.entries({ "queue-password-env": passwordEnv, shared })) {
      if (value !== undefined) throw new UsageError(`Cannot use --${name} without --queue`);
    }
    return undefined;
  }
  checkUrl(url);
  return { url, ...withoutUndefined({ passwordEnv, shared }) };
}

function checkUrl(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !["redis:", "rediss:"].includes(parsed.protocol)) {
    const shown = parsed === undefined ? shownUrl(url) : `${parsed.protocol}//${parsed.host}`;
    throw new UsageError(
      `Cannot use --queue ${shown}: expected redis://host:6379 or, with TLS, rediss://host:6379`,
    );
  }
  if (!/^\/?\d{0,5}$/.test(parsed.pathname) || parsed.search !== "" || parsed.hash !== "") {
    throw new UsageError(
      `Cannot use --queue ${parsed.protocol}//${parsed.host}: the path is not the number of a database, ` +
        "expected such as redis://host:6379 or redis://host:6379/1",
    );
  }
  // Every user of the machine can read a command line.
  if (parsed.password === "") return;
  throw new UsageError(
    `Cannot use --queue ${parsed.protocol}//${parsed.host}: it holds a password, expected the name of a variable that holds it in --queue-password-env`,
  );
}
