import { findBranches, type BranchPlace } from "./find-branches.ts";
import { addResult, type ResultEntry, type TaskRewards } from "./task-rewards.ts";

/** What a comparison reads of a run. */
export interface RunResults {
  /** Where it was read from. */
  readonly source: string;
  /** Environment and split of its tasks, each once; empty where the source does not say. */
  readonly scopes: readonly string[];
  /** Set where it knows tasks by their numbers alone, as a results file does. */
  readonly isByNumber?: true;
  /** By the task's id. */
  readonly tasks: ReadonlyMap<string, TaskRewards>;
  /** Attempts that part from another one of the run, and are left out. Default 0. */
  readonly branchCount?: number;
}

/** An attempt of a run, as a comparison reads it. */
export interface AttemptEntry extends ResultEntry, BranchPlace {
  /** Absent where its line does not say. */
  readonly environment?: string;
  readonly split?: string;
}

/** What a comparison reads of a run's attempts, wherever they were read from. */
export function collectResults(source: string, attempts: readonly AttemptEntry[]): RunResults {
  const branches = findBranches(attempts);
  const scopes = new Set<string>();
  const tasks = new Map<string, TaskRewards>();
  for (const attempt of attempts) {
    const { environment, split, rolloutId } = attempt;
    if (environment !== undefined) scopes.add(`${environment}/${split}`);
    if (!branches.has(rolloutId)) addResult(tasks, attempt);
  }
  const left = branches.size === 0 ? {} : { branchCount: branches.size };
  return { source, scopes: [...scopes].toSorted(), tasks, ...left };
}
