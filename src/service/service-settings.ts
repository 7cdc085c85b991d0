import { requireIds } from "../composition/config/chat-config.ts";
import { UsageError } from "../errors.ts";
import { defaultDoctorTokens } from "./doctor/service-doctor.ts";
import { engineAddress } from "./engine-address.ts";
import { queueSettings, readQueueConfig, type QueueConfig } from "../queue/queue-settings.ts";
import { readRunConfig, runSettings, type RunConfig } from "../composition/config/run-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import {
  completeSettings,
  count,
  flag,
  text,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";

/** Settings that only a service has. */
const ownSettings = [
  {
    name: "host",
    kind: text,
    value: "address",
    help: "address to listen on; any but this machine's own needs --token-env",
    default: "127.0.0.1",
    operational: true,
  },
  {
    name: "port",
    kind: count(0),
    value: "n",
    help: "port to listen on; 0: any",
    default: 8799,
    operational: true,
  },
  {
    name: "token-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the token which each call must bring",
    operational: true,
  },
  {
    name: "agent-lightning",
    kind: text,
    value: "url",
    help: "take work from agent-lightning's server at this address",
    operational: true,
  },
  {
    name: "agent-lightning-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the key of agent-lightning's server",
    operational: true,
  },
  {
    name: "batch-engine",
    kind: { type: "list" },
    help: "address of an engine of the same policy that batches may name; without, they may name none",
    operational: true,
  },
  {
    name: "max-queued",
    kind: count(1),
    value: "n",
    help: "attempts that may be accepted and unfinished",
    default: 262_144,
    operational: true,
  },
  {
    name: "keep-columns",
    kind: flag,
    help: "keep the side columns of acknowledged groups (default: free their space)",
    operational: true,
  },
  {
    name: "doctor-tokens",
    kind: count(1),
    value: "n",
    help: "trained tokens of the newest rows that the live diagnosis is of; each takes about 100 bytes",
    default: defaultDoctorTokens,
    operational: true,
  },
] as const satisfies readonly Setting[];

/** Settings that `serve` refuses: each batch gives its own value, or a service has no use for them. */
const notServed: ReadonlySet<string> = new Set([
  "split",
  "tasks",
  "samples",
  "seed",
  "format",
  "retry-failed",
  "max-failures",
]);

const sharedSettings: readonly Setting[] = runSettings.filter(({ name }) => !notServed.has(name));

/** The settings of `turnwright serve`. */
export const serviceSettings: readonly Setting[] = [
  ...sharedSettings,
  ...queueSettings,
  ...ownSettings,
];

/** The settings of a service. */
export interface ServiceConfig {
  /**
   * The configuration of the run that all batches share. It has no tasks, because each batch names
   * its own.
   */
  readonly run: RunConfig;
  readonly dir: string;
  readonly host: string;
  readonly port: number;
  readonly tokenEnv?: string;
  readonly maxQueued: number;
  /** True to keep the side columns of acknowledged groups. */
  readonly keepsColumns: boolean;
  /** Number of trained tokens in a live diagnosis. The newest rows count. */
  readonly doctorTokens: number;
  /** Addresses of engines that batches may name, as `engineAddress()` writes them. */
  readonly batchEngines: readonly string[];
  /** The agent-lightning server that supplies rollouts. Absent if none is configured. */
  readonly agentLightning?: { readonly url: string; readonly keyEnv?: string };
  /** The queue that distributes attempts to workers. Absent if this process plays them. */
  readonly queue?: QueueConfig;
}

/**
 * Reads a service's settings.
 *
 * @throws UsageError for a setting that is unknown, missing or of the wrong type.
 */
export function readServiceConfig(settings: GivenSettings): ServiceConfig {
  const own = new Set<string>(ownSettings.map(({ name }) => name));
  const ofQueue = new Set<string>(queueSettings.map(({ name }) => name));
  const queue = readQueueConfig(
    Object.fromEntries(Object.entries(settings).filter(([name]) => ofQueue.has(name))),
  );
  const entries = Object.entries(settings).filter(([name]) => !ofQueue.has(name));
  const values = completeSettings<(typeof ownSettings)[number]>(
    ownSettings,
    Object.fromEntries(entries.filter(([name]) => own.has(name))),
  );
  const run = readRunConfig(Object.fromEntries(entries.filter(([name]) => !own.has(name))));
  requireIds(run.engine, { doing: "serve rollouts" });
  const { host, port, "token-env": tokenEnv, "max-queued": maxQueued } = values;
  const { "agent-lightning": url, "agent-lightning-key-env": keyEnv } = values;
  if (url !== undefined && !URL.canParse(url)) {
    throw new UsageError(`Cannot use --agent-lightning ${url}: expected http://host:port`);
  }
  if (url === undefined && keyEnv !== undefined) {
    throw new UsageError("Cannot use --agent-lightning-key-env without --agent-lightning URL");
  }
  if (port > 65_535) throw new UsageError(`Cannot use --port ${port}: at most 65535`);
  const dir = run.conduct.dir ?? "runs/service";
  const agentLightning =
    url === undefined ? undefined : { url, ...(keyEnv !== undefined && { keyEnv }) };
  const batchEngines = readBatchEngines(values["batch-engine"] ?? [], { run, queue });
  const optional = withoutUndefined({ tokenEnv, agentLightning, queue });
  const { "keep-columns": keepsColumns = false, "doctor-tokens": doctorTokens } = values;
  const required = { run, dir, host, port, maxQueued, keepsColumns, doctorTokens, batchEngines };
  return { ...required, ...optional };
}

function readBatchEngines(
  given: readonly string[],
  { run: { engine }, queue }: { readonly run: RunConfig; readonly queue: QueueConfig | undefined },
): readonly string[] {
  if (given.length === 0) return [];
  if (!("urls" in engine)) {
    throw new UsageError(
      `Cannot use --batch-engine with --engine ${engine.kind}: it is in this process and has no address`,
    );
  }
  if (queue !== undefined) {
    throw new UsageError(
      "Cannot use --batch-engine with --queue: workers have engines of their own",
    );
  }
  const addresses = given.map((text) => {
    const address = engineAddress(text);
    if (address !== undefined) return address;
    throw new UsageError(`Cannot use --batch-engine ${text}: expected http://host:port`);
  });
  return [...new Set(addresses)];
}
