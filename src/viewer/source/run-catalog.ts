import path from "node:path";
import { UsageError } from "../../errors.ts";
import { overviewOf, type RunOverview } from "../model/lists/run-figures.ts";
import { findRunFolders, isRunFolder } from "./find-run-folders.ts";
import { RunIndex } from "./run-index.ts";

/** A run's folder that cannot be read. JSON-able. */
export interface UnreadableRun {
  readonly dir: string;
  readonly problem: string;
}

/** A folder of runs, in which new runs may appear. */
interface WatchedFolder {
  readonly dir: string;
  /** The folder's absolute path. */
  readonly root: string;
}

/** Options for the runs that are viewed. */
interface CatalogOptions {
  /** The lowest reward of a success. Default: the environment's own verdict, or the reward 1. */
  readonly successThreshold?: number | undefined;
}

/** The runs that are viewed, by name. Finds new runs in folders of runs. */
export class RunCatalog {
  readonly #runs = new Map<string, RunIndex>();
  readonly #folders: WatchedFolder[] = [];
  /** The last overview of each run, with the state of its episodes. */
  readonly #overviews = new WeakMap<RunIndex, readonly [state: string, overview: RunOverview]>();
  readonly #options: CatalogOptions;
  #unreadable: readonly UnreadableRun[] = [];
  #searching: Promise<void> | undefined;

  constructor(options: CatalogOptions = {}) {
    this.#options = options;
  }

  /** The runs that are known so far. */
  get runs(): readonly RunIndex[] {
    return [...this.#runs.values()];
  }

  /** True if the runs of a folder are viewed, so that runs may be added. */
  get isFolder(): boolean {
    return this.#folders.length > 0;
  }

  /** The runs' folders that could not be read at the last search. */
  get unreadable(): readonly UnreadableRun[] {
    return this.#unreadable;
  }

  /**
   * Returns a run by its name. Reads the run at the first call.
   *
   * @throws UsageError if no viewed run has the name.
   */
  async find(key: string): Promise<RunIndex> {
    if (!this.#runs.has(key)) await this.search();
    const run = this.#runs.get(key);
    if (run === undefined) throw new UsageError(`Cannot find run ${key}: it is not being viewed`);
    await run.readOnce();
    return run;
  }

  /**
   * Adds a run's folder, or all runs below a folder.
   * @throws UsageError if the folder holds no run, or if it is a run that cannot be read.
   */
  async add(dir: string): Promise<void> {
    const name = path.basename(path.resolve(dir)) || "run";
    const isParent = !(await isRunFolder(dir)) && (await findRunFolders(dir)).length > 0;
    if (!isParent) {
      const key = this.#freeKey(name);
      this.#runs.set(key, await RunIndex.open(dir, { ...this.#options, key }));
      return;
    }
    this.#folders.push({ dir, root: path.resolve(dir) });
    await this.search();
  }

  /** Searches the folders of runs again. Removes runs whose folders are gone. */
  async search(): Promise<void> {
    this.#searching ??= this.#search().finally(() => (this.#searching = undefined));
    await this.#searching;
  }

  /** Reads what was appended to all runs since the last call, and returns the runs with their figures. */
  async overviews(): Promise<readonly RunOverview[]> {
    const found: RunOverview[] = [];
    for (const run of this.runs) {
      await run.refresh("episodes");
      found.push(this.#overviewOf(run));
    }
    return found;
  }

  /** Returns a run with its figures, which are computed again only if it has other episodes. */
  #overviewOf(run: RunIndex): RunOverview {
    const { facts, entries } = run;
    const state = `${facts.generation} ${entries.length}`;
    const [knownState, known] = this.#overviews.get(run) ?? [];
    if (known !== undefined && knownState === state) return { ...known, facts };
    const overview = overviewOf(facts, entries);
    this.#overviews.set(run, [state, overview]);
    return overview;
  }

  async #search(): Promise<void> {
    const unreadable: UnreadableRun[] = [];
    const known = new Set(this.runs.map(({ root }) => root));
    for (const { dir, root } of this.#folders) {
      const names = await findRunFolders(root);
      const present = new Set(names.map((name) => path.join(root, name)));
      for (const [key, run] of this.#runs) {
        const isBelow = run.root.startsWith(`${root}${path.sep}`);
        if (isBelow && !present.has(run.root)) this.#runs.delete(key);
      }
      for (const name of names) {
        if (known.has(path.join(root, name))) continue;
        const place = path.join(dir, name);
        const key = this.#freeKey(name);
        try {
          this.#runs.set(
            key,
            await RunIndex.openUnread(place, {
              ...this.#options,
              key,
              root: path.join(root, name),
            }),
          );
        } catch (error) {
          if (!(error instanceof UsageError)) throw error;
          unreadable.push({ dir: place, problem: error.message });
        }
      }
    }
    this.#unreadable = unreadable;
  }

  #freeKey(name: string): string {
    let key = name;
    for (let count = 2; this.#runs.has(key); count++) key = `${name}-${count}`;
    return key;
  }
}

/**
 * Opens runs' folders, and folders of runs. The names of runs are those of their folders.
 * @throws UsageError if a folder has no run, or if no folder is named.
 */
export async function openRuns(
  dirs: readonly string[],
  options: CatalogOptions = {},
): Promise<RunCatalog> {
  if (dirs.length === 0) throw new UsageError("Cannot view runs: expected a run's folder");
  const catalog = new RunCatalog(options);
  for (const dir of dirs) await catalog.add(dir);
  return catalog;
}
