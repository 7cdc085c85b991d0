import { UsageError, describeError } from "../errors.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { isPyDict, isPyList, type PyValue } from "../../packages/python-values/src/value.ts";
import { collectResults, type AttemptEntry, type RunResults } from "./collect-results.ts";
import { isFolder, openStoredRun } from "./read-run.ts";
import { addResult, type TaskRewards } from "./task-rewards.ts";
import { readTextFile } from "../text/decode-text.ts";

/**
 * Reads the rewards of a run's folder, or of a results file in τ-bench's format. In the latter, an
 * attempt with `info.error` or with the reward NaN is unscored.
 * **Source:** sierra-research/tau-bench, tau_bench/types.py (`EnvRunResult`).
 * @throws UsageError if it is neither.
 */
export async function readRunResults(source: string): Promise<RunResults> {
  return (await isFolder(source)) ? await readFolder(source) : await readResultsFile(source);
}

async function readFolder(source: string): Promise<RunResults> {
  const run = await openStoredRun(source);
  const attempts: AttemptEntry[] = [];
  for await (const row of run.rows()) {
    const { rolloutId, groupId, forkedFrom, taskId, taskIndex, reward, environment, split } = row;
    const forked = forkedFrom === undefined ? {} : { forkedFrom };
    const attempt = { rolloutId, groupId, taskId, taskIndex, reward, environment, split };
    attempts.push({ ...attempt, ...forked });
  }
  return collectResults(source, attempts);
}

async function readResultsFile(source: string): Promise<RunResults> {
  const list = await readPythonJson(source);
  if (!isPyList(list)) throw new UsageError(`Cannot read ${source}: expected a list of results`);
  const tasks = new Map<string, TaskRewards>();
  for (const [index, entry] of list.entries()) {
    const taskIndex = numberOf(entry, "task_id");
    const reward = numberOf(entry, "reward");
    if (taskIndex === undefined || reward === undefined) {
      throw new UsageError(
        `Cannot read ${source}: [${index}]: expected numbers task_id and reward`,
      );
    }
    const isScored = !hasError(entry) && !Number.isNaN(reward);
    addResult(tasks, {
      taskIndex,
      taskId: String(taskIndex),
      ...(isScored && { reward }),
    });
  }
  return { source, scopes: [], isByNumber: true, tasks };
}

/** Reads JSON as Python does, because a results file may contain NaN. */
async function readPythonJson(file: string): Promise<PyValue> {
  try {
    return parsePythonJson(await readTextFile(file));
  } catch (error) {
    throw new UsageError(
      `Cannot read ${file}: expected a run's folder or a τ-bench results file (${describeError(error)})`,
      { cause: error },
    );
  }
}

/** True if τ-bench reports an error of the attempt. It gives such an attempt the reward 0. */
function hasError(entry: PyValue): boolean {
  const info = isPyDict(entry) ? entry.get("info") : undefined;
  return isPyDict(info) && typeof info.get("error") === "string";
}

function numberOf(entry: PyValue, name: string): number | undefined {
  const value = isPyDict(entry) ? entry.get(name) : undefined;
  return typeof value === "bigint" || typeof value === "number" ? Number(value) : undefined;
}
