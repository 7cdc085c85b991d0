import { readFile } from "node:fs/promises";
import { UsageError, describeError } from "../errors.ts";
import { parsePythonJson } from "../python/json-parse.ts";
import { isPyDict, isPyList, type PyValue } from "../python/value.ts";
import { isFolder, openStoredRun } from "./read-run.ts";

/** The attempts at one task, as a comparison reads them. */
export interface TaskRewards {
  /** Names the task in texts. */
  readonly taskId: string;
  /** Rewards of the scored attempts. */
  readonly rewards: readonly number[];
  readonly unscoredCount: number;
}

/** What a comparison reads of a run. */
export interface RunResults {
  /** Where it was read from. */
  readonly source: string;
  /** Environment and split, where the source says. */
  readonly scope?: string;
  /** By the task's index within the split. */
  readonly tasks: ReadonlyMap<number, TaskRewards>;
}

/**
 * Reads the rewards of a run's folder, or of a results file in τ-bench's own format.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/types.py (`EnvRunResult`).
 *
 * @throws UsageError where it is neither.
 */
export async function readRunResults(source: string): Promise<RunResults> {
  return (await isFolder(source)) ? await readFolder(source) : await readResultsFile(source);
}

async function readFolder(source: string): Promise<RunResults> {
  const run = await openStoredRun(source);
  const tasks = new Map<number, TaskRewards>();
  for await (const { taskIndex, taskId, reward } of run.rows())
    addResult(tasks, { taskIndex, taskId, reward });
  const { env, split } = run.manifest.configuration;
  return { source, scope: `${String(env)}/${String(split)}`, tasks };
}

async function readResultsFile(source: string): Promise<RunResults> {
  const list = await readPythonJson(source);
  if (!isPyList(list)) throw new UsageError(`Cannot read ${source}: expected a list of results`);
  const tasks = new Map<number, TaskRewards>();
  for (const [index, entry] of list.entries()) {
    const taskIndex = numberOf(entry, "task_id");
    const reward = numberOf(entry, "reward");
    if (taskIndex === undefined || reward === undefined) {
      throw new UsageError(
        `Cannot read ${source}: [${index}]: expected numbers task_id and reward`,
      );
    }
    addResult(tasks, { taskIndex, taskId: String(taskIndex), reward });
  }
  return { source, tasks };
}

/** As Python reads it: a results file may hold NaN, which JSON does not know. */
async function readPythonJson(file: string): Promise<PyValue> {
  try {
    return parsePythonJson(await readFile(file, "utf8"));
  } catch (error) {
    throw new UsageError(
      `Cannot read ${file}: expected a run's folder or a τ-bench results file (${describeError(error)})`,
      { cause: error },
    );
  }
}

function numberOf(entry: PyValue, name: string): number | undefined {
  const value = isPyDict(entry) ? entry.get(name) : undefined;
  return typeof value === "bigint" || typeof value === "number" ? Number(value) : undefined;
}

function addResult(
  tasks: Map<number, TaskRewards>,
  { taskIndex, taskId, reward }: { taskIndex: number; taskId: string; reward: number | undefined },
): void {
  const { rewards, unscoredCount } = tasks.get(taskIndex) ?? { rewards: [], unscoredCount: 0 };
  tasks.set(taskIndex, {
    taskId,
    rewards: reward === undefined ? rewards : [...rewards, reward],
    unscoredCount: unscoredCount + (reward === undefined ? 1 : 0),
  });
}
