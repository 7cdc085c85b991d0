import { readRuns, type RunEntry } from "./run/run-entry.ts";
import { readWorkers, type WorkerEntry } from "./run/worker-entry.ts";
import { queueName } from "./store/keys.ts";
import type { QueueStore } from "./store/queue-store.ts";

/** A run as the queue shows it. JSON-able. */
export interface QueuedRunState extends Pick<
  RunEntry,
  "run" | "environment" | "host" | "pid" | "landed"
> {
  /** True if a process hands out the run now. */
  readonly isHandedOut: boolean;
  /** The number of jobs that no worker has taken. */
  readonly waiting: number;
  readonly playing: number;
  /** The number of answers that the hand-out has not read, or that are not on its disk yet. */
  readonly answered: number;
  /** The reason why the run waits, in words. */
  readonly waitsFor: string;
}

/** A worker as the queue shows it. JSON-able. */
export interface WorkerState extends Pick<
  WorkerEntry,
  "worker" | "host" | "pid" | "state" | "concurrency" | "played" | "turnwright" | "refuses"
> {
  readonly playing: number;
  /** Attempts per second since the last reading, or since the worker's start. */
  readonly attemptRate: number;
  readonly turnRate: number;
  readonly tokenRate: number;
  /** Share of the time in which its event loop is busy, 0 to 1. */
  readonly busy: number;
  /** The reason why the worker waits, in words. */
  readonly waitsFor: string;
}

/** The state of a queue. JSON-able. */
export interface QueueState {
  readonly atMs: number;
  readonly store: { readonly memoryBytes: number; readonly clients: number };
  readonly runs: readonly QueuedRunState[];
  readonly workers: readonly WorkerState[];
}

/** Reads the state of a queue repeatedly, and computes rates from the previous reading. */
export class QueueWatch {
  readonly #store: QueueStore;
  readonly #before = new Map<string, WorkerEntry>();

  constructor(store: QueueStore) {
    this.#store = store;
  }

  /** Reads the current state. */
  async read(): Promise<QueueState> {
    const workers = await readWorkers(this.#store);
    const runs = await readRuns(this.#store);
    const states: QueuedRunState[] = [];
    for (const entry of runs) states.push(await this.#readRun(entry, workers));
    const found = workers.map((entry) => describeWorker(entry, this.#beforeOf(entry)));
    return {
      atMs: this.#store.now(),
      store: await this.#readStore(),
      runs: states.toSorted((one, other) => (one.run < other.run ? -1 : 1)),
      workers: found.toSorted((one, other) => (one.worker < other.worker ? -1 : 1)),
    };
  }

  /** Returns the worker's previous report, for the computation of rates. */
  #beforeOf(entry: WorkerEntry): WorkerEntry | undefined {
    const before = this.#before.get(entry.worker);
    if (before !== undefined && before.atMs === entry.atMs) return undefined;
    this.#before.set(entry.worker, entry);
    return before?.startedAtMs === entry.startedAtMs ? before : undefined;
  }

  async #readRun(
    entry: RunEntry & { readonly isAlive: boolean },
    workers: readonly WorkerEntry[],
  ): Promise<QueuedRunState> {
    const { run, environment, host, pid, landed, isAlive } = entry;
    const queue = new this.#store.bullmq.Queue(queueName(run), {
      ...this.#store.bullOptions,
      skipMetasUpdate: true,
    });
    queue.on("error", () => {});
    try {
      const counts = await queue.getJobCounts("wait", "prioritized", "active", "completed");
      const waiting = (counts["wait"] ?? 0) + (counts["prioritized"] ?? 0);
      const playing = counts["active"] ?? 0;
      return {
        run,
        environment,
        host,
        pid,
        landed,
        isHandedOut: isAlive,
        waiting,
        playing,
        answered: counts["completed"] ?? 0,
        waitsFor: runWaitsFor({ run, isAlive, waiting, playing }, workers),
      };
    } finally {
      await queue.close();
    }
  }

  async #readStore(): Promise<QueueState["store"]> {
    const info = await this.#store.redis.info("memory");
    const clients = await this.#store.redis.info("clients");
    const numberOf = (text: string, name: string): number =>
      Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1] ?? 0);
    return {
      memoryBytes: numberOf(info, "used_memory"),
      clients: numberOf(clients, "connected_clients"),
    };
  }
}

function runWaitsFor(
  state: {
    readonly run: string;
    readonly isAlive: boolean;
    readonly waiting: number;
    readonly playing: number;
  },
  workers: readonly WorkerEntry[],
): string {
  const { run, isAlive, waiting, playing } = state;
  if (!isAlive) return "a process that hands it out";
  if (waiting === 0) return playing === 0 ? "its own process" : "attempts to end";
  const willing = workers.filter(({ refuses }) => refuses[run] === undefined);
  if (workers.length === 0) return "workers: none has joined";
  if (willing.length === 0) return `workers: all ${workers.length} refuse it`;
  return "places at workers";
}

function describeWorker(entry: WorkerEntry, before: WorkerEntry | undefined): WorkerState {
  const { worker, host, pid, state, concurrency, played, turnwright, refuses, busy } = entry;
  const playing = Object.values(entry.playing).reduce((sum, count) => sum + count, 0);
  const seconds = Math.max(0.001, (entry.atMs - (before?.atMs ?? entry.startedAtMs)) / 1_000);
  const rate = (name: "played" | "turns" | "sampledTokens"): number =>
    Math.max(0, entry[name] - (before?.[name] ?? 0)) / seconds;
  return {
    worker,
    host,
    pid,
    state,
    concurrency,
    played,
    turnwright,
    refuses,
    busy,
    playing,
    attemptRate: rate("played"),
    turnRate: rate("turns"),
    tokenRate: rate("sampledTokens"),
    waitsFor: workerWaitsFor(entry, before, playing),
  };
}

function workerWaitsFor(
  entry: WorkerEntry,
  before: WorkerEntry | undefined,
  playing: number,
): string {
  const refused = Object.keys(entry.refuses).length;
  if (playing === 0 && refused > 0) return `a run that it does not refuse (${refused} are refused)`;
  if (playing === 0) return "attempts";
  const names = ["engine", "user", "environment"] as const;
  const spent = names.map((name) => entry.spentMs[name] - (before?.spentMs[name] ?? 0));
  const sum = spent.reduce((total, ms) => total + ms, 0);
  if (sum <= 0) return "its first turns to end";
  const [engine, user, environment] = spent.map((ms) => `${Math.round((100 * ms) / sum)} %`);
  return `model ${engine}, user ${user}, tools ${environment}`;
}
