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

/** Where attempts are handed out by a queue. None of it changes what is played. */
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

/** Attempts that are handed out at once where nobody says how many: more than a few workers play. */
export const handedOutAtOnce = 1_024;

/** How to reach the queue's store and the place that all share. */
export interface QueueConfig {
  /** Without a password. */
  readonly url: string;
  readonly passwordEnv?: string;
  /** A folder, or `s3://bucket/prefix`. */
  readonly shared?: string;
}

/**
 * Reads how attempts are handed out; nothing where they are not.
 *
 * @throws UsageError for a URL that is none, or holds a password, and for what is given without `queue`.
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
      `Cannot use --queue ${parsed.protocol}//${parsed.host}: what is behind the host is no database's number, ` +
        "expected such as redis://host:6379 or redis://host:6379/1",
    );
  }
  // Arguments can be read by everyone on the machine.
  if (parsed.password === "") return;
  throw new UsageError(
    `Cannot use --queue ${parsed.protocol}//${parsed.host}: it holds a password, expected the name of a variable that holds it in --queue-password-env`,
  );
}
