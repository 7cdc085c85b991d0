import { findBranches, type BranchPlace } from "./find-branches.ts";
import { addResult, type ResultEntry, type TaskRewards } from "./task-rewards.ts";

/** The part of a run that a comparison reads. */
export interface RunResults {
  /** The folder or file that was read. */
  readonly source: string;
  /** The distinct environments and splits of the tasks. Empty if the source does not name them. */
  readonly scopes: readonly string[];
  /** Set if the source identifies tasks only by number, as a results file does. */
  readonly isByNumber?: true;
  /** The rewards of each task, by the task's id. */
  readonly tasks: ReadonlyMap<string, TaskRewards>;
  /**
   * The number of attempts that branch from another attempt of the run. Such attempts are left out
   * of the comparison. Default 0.
   */
  readonly branchCount?: number;
}

/** An attempt with the facts that a comparison needs. */
export interface AttemptEntry extends ResultEntry, BranchPlace {
  /** The environment's name. Absent if the attempt's line does not name one. */
  readonly environment?: string;
  readonly split?: string;
}

/** Collects the rewards that a comparison needs from a run's attempts. */
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
