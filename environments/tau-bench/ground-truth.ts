import { callTool } from "./call-tool.ts";
import type { DatabaseHasher } from "./database-hash.ts";
import type { SharedTables, Tables, TauDomain } from "./tau-domain.ts";
import { openDatabase } from "./tau-domain.ts";
import type { TauTaskData } from "./tau-task.ts";

/** A task's wanted state. */
interface GroundTruth {
  readonly database: Tables;
  /** τ-bench's hash of the state, computed on the first call. */
  hash(): Promise<string>;
}

/** The inputs for computing wanted states. */
interface GroundTruthsOptions<Database extends Tables> {
  readonly domain: TauDomain<Database>;
  readonly shared: SharedTables;
  readonly terminatingTools: ReadonlySet<string>;
  readonly hasher: DatabaseHasher;
}

/** The wanted states of tasks, each computed once. */
export class GroundTruths<Database extends Tables> {
  readonly #options: GroundTruthsOptions<Database>;
  readonly #known = new WeakMap<TauTaskData, GroundTruth>();

  constructor(options: GroundTruthsOptions<Database>) {
    this.#options = options;
  }

  /**
   * Replays the task's actions on fresh data, as the original does to score an episode: actions that end an episode
   * are skipped, and exceptions of tools are ignored.
   */
  of(task: TauTaskData): GroundTruth {
    const known = this.#known.get(task);
    if (known !== undefined) return known;
    const { domain, shared, terminatingTools, hasher } = this.#options;
    const database = openDatabase(domain, shared);
    for (const { name, kwargs } of task.actions) {
      if (!terminatingTools.has(name)) callTool(domain, database, { name, arguments: kwargs });
    }
    let hash: Promise<string> | undefined;
    const truth: GroundTruth = {
      database,
      hash: () => (hash ??= hasher.hash(database)),
    };
    this.#known.set(task, truth);
    return truth;
  }
}
