import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { RolloutError, UsageError } from "../../errors.ts";
import { once } from "../../values/once.ts";
import type { PythonFacts, PythonTask } from "./python-answers.ts";
import { readFacts } from "./python-answers.ts";
import { describeLoadFailure } from "./load-failure.ts";
import { PythonFailure } from "./python-failure.ts";
import { PythonProcess, type PythonProcessOptions, type RequestOptions } from "./python-process.ts";

/**
 * The time limit for loading an environment, in milliseconds. The first import of a large library can take a minute,
 * since Python compiles it then.
 */
const loadMs = 300_000;

/** The number of times in a row that a process may die while it loads the environment. */
const maxLoadDeaths = 3;

/** The number of tasks that one request reads. */
const taskBatch = 1_000;

/** Options of `PythonPool.start()`. */
export interface PythonPoolOptions extends PythonProcessOptions {
  /** The environment's file, or `LIBRARY:NAME`. */
  readonly environment: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The number of processes. */
  readonly processCount: number;
}

/** A process that is leased to an episode. Dispose of it when the episode is over. */
export interface PythonLease extends Disposable {
  request(
    what: string,
    given: Readonly<Record<string, unknown>>,
    options: RequestOptions,
  ): Promise<unknown>;
}

/** One place of the pool: a process, or the next one while it starts. */
interface Slot {
  process: PythonProcess | undefined;
  starting: Promise<PythonProcess> | undefined;
  leaseCount: number;
}

/**
 * The processes that play one environment. An episode keeps its process, and a process that died is replaced when the
 * next episode needs it.
 */
export class PythonPool {
  readonly facts: PythonFacts;
  readonly #options: PythonPoolOptions;
  readonly #slots: Slot[];
  #loadDeaths = 0;

  private constructor(options: PythonPoolOptions, facts: PythonFacts, first: PythonProcess) {
    this.#options = options;
    this.facts = facts;
    this.#slots = Array.from({ length: options.processCount }, () => ({
      process: undefined,
      starting: undefined,
      leaseCount: 0,
    }));
    this.#slots[0]!.process = first;
  }

  /**
   * Starts the first process, loads the environment in it, and then starts the other processes.
   * @throws UsageError if the environment cannot be loaded, with the file, the line and the remedy.
   */
  static async start(options: PythonPoolOptions): Promise<PythonPool> {
    try {
      const first = await PythonProcess.start({ ...options, onProgress: reportOnce(options) });
      const pool = new PythonPool(options, await load(first, options), first);
      for (const slot of pool.#slots.slice(1)) pool.#open(slot).catch(() => undefined);
      return pool;
    } catch (error) {
      if (!(error instanceof PythonFailure)) throw error;
      throw new UsageError(describeLoadFailure(error, options));
    }
  }

  /** Returns the tasks of each split. */
  async readTasks(): Promise<Readonly<Record<string, readonly PythonTask[]>>> {
    const first = this.#slots[0]!.process!;
    using _held = first.hold();
    const bySplit: Record<string, readonly PythonTask[]> = {};
    try {
      for (const [split, length] of Object.entries(this.facts.splits)) {
        const tasks: PythonTask[] = [];
        while (tasks.length < length) {
          const range = { start: tasks.length, stop: Math.min(length, tasks.length + taskBatch) };
          const answer = await first.request("tasks", { split, ...range }, { timeoutMs: loadMs });
          tasks.push(...(answer as { readonly tasks: readonly PythonTask[] }).tasks);
        }
        bySplit[split] = tasks;
      }
    } catch (error) {
      if (!(error instanceof PythonFailure)) throw error;
      throw new UsageError(describeLoadFailure(error, this.#options));
    }
    return bySplit;
  }

  /**
   * Leases the process with the fewest episodes.
   * @throws RolloutError `environment/unreachable` if it cannot be started.
   */
  async lease(): Promise<PythonLease> {
    const slot = this.#slots.reduce((least, one) =>
      one.leaseCount < least.leaseCount ? one : least,
    );
    slot.leaseCount += 1;
    let isHeld = true;
    let held: Disposable | undefined;
    const free = (): void => {
      if (isHeld) slot.leaseCount -= 1;
      isHeld = false;
      held?.[Symbol.dispose]();
    };
    try {
      const leased = slot.process?.isAlive === true ? slot.process : await this.#open(slot);
      held = leased.hold();
      return {
        request: async (what, given, options) => await leased.request(what, given, options),
        [Symbol.dispose]: free,
      };
    } catch (error) {
      free();
      throw this.#toFailure(error);
    }
  }

  /** Returns the failure of the episode that needs a process which cannot be started. */
  #toFailure(error: unknown): unknown {
    const code = "environment/unreachable";
    if (error instanceof UsageError) return new RolloutError(code, error.message, { cause: error });
    if (!(error instanceof PythonFailure)) return error;
    return new RolloutError(code, describeLoadFailure(error, this.#options), {
      cause: error,
      retryable: this.#loadDeaths < maxLoadDeaths,
    });
  }

  /** Ends all processes. */
  async close(): Promise<void> {
    await Promise.all(
      this.#slots.map(async (slot) => {
        // The process of a slot may be dead, and the next one starting.
        const next = await slot.starting?.catch(() => undefined);
        await Promise.all([slot.process?.close(), next?.close()]);
      }),
    );
  }

  async #open(slot: Slot): Promise<PythonProcess> {
    slot.starting ??= this.#start(slot).finally(() => (slot.starting = undefined));
    return await slot.starting;
  }

  async #start(slot: Slot): Promise<PythonProcess> {
    try {
      const started = await PythonProcess.start(this.#options);
      const facts = await load(started, this.#options);
      try {
        requireSameFacts(facts, this.facts, this.#options.environment);
      } catch (error) {
        started.kill();
        throw error;
      }
      slot.process = started;
      this.#loadDeaths = 0;
      return started;
    } catch (error) {
      this.#loadDeaths += 1;
      throw error;
    }
  }
}

/** Returns a function that says once that an import takes long. */
function reportOnce({ environment, onOutput }: PythonPoolOptions): () => void {
  return once(() =>
    onOutput(
      `${environment} is being imported; the first time takes longest, since Python compiles\n`,
    ),
  );
}

/**
 * Compares what another process has loaded with what the first one has.
 * @throws UsageError if a file has changed, or if the tasks differ.
 */
function requireSameFacts(found: PythonFacts, first: PythonFacts, environment: string): void {
  const start = `Cannot play environment ${environment} in another process`;
  const changed = Object.keys({ ...first.files, ...found.files }).find(
    (file) => first.files[file] !== found.files[file],
  );
  if (changed !== undefined) {
    throw new UsageError(
      `${start}: ${path.relative("", changed)} changed after the run had loaded it, expected the same file until the run ends`,
    );
  }
  if (found.tasksHash !== first.tasksHash || !isDeepStrictEqual(found.splits, first.splits)) {
    throw new UsageError(
      `${start}: its tasks are not those of the first process, expected the same ones at each start (draw them with a seed)`,
    );
  }
}

/** Loads the environment in a process. Kills the process if that fails. */
async function load(process: PythonProcess, options: PythonPoolOptions): Promise<PythonFacts> {
  const { environment, args } = options;
  using _held = process.hold();
  try {
    const given = { env: environment, args };
    const facts = await process.request("load", given, { timeoutMs: loadMs });
    return readFacts(facts, environment);
  } catch (error) {
    process.kill();
    throw error;
  }
}
