import { existsSync } from "node:fs";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { once } from "../../values/once.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import { toUser } from "../defined-user.ts";
import type { Environment } from "../environment.ts";
import { nameTasks } from "../task-list.ts";
import { findPython } from "./find-python.ts";
import type { PythonTask } from "./python-answers.ts";
import { PythonEpisode } from "./python-episode.ts";
import { isPythonFile } from "./python-name.ts";
import { PythonPool } from "./python-pool.ts";
import { toTools } from "./python-tools.ts";
import { createPythonUser } from "./python-user.ts";
import { PythonWorld } from "./python-world.ts";
import { TurnWorld } from "./turn-world.ts";

/** Options of `createPythonEnvironment()`. */
export interface PythonEnvironmentOptions {
  /** A file such as `./calendar_env.py`, or an environment of a library such as `gem:game:GuessTheNumber-v0`. */
  readonly environment: string;
  /** Arguments of the environment: of `create_environment()` in the file, or of the library's adapter. JSON-able. */
  readonly args?: Readonly<Record<string, unknown>>;
  /** The interpreter's path or name. Default: see `findPython()`. */
  readonly python?: string;
  /** The number of processes. Default 1. */
  readonly processes?: number;
  /** Called with errors of threads and tasks that no call waits for. Default: a warning of Node.js. */
  readonly onTrouble?: (trouble: string) => void;
  /** Called with the output of the environment. Default: the output goes to the stderr of this process. */
  readonly onOutput?: (text: string) => void;
}

/** An environment that Python processes play. */
export interface PythonEnvironment extends Environment<PythonTask>, AsyncDisposable {
  /** The environment's own user. */
  readonly user: User;
  /** The environment's files, except installed packages. Absolute paths. */
  readonly files: readonly string[];
  /** A hash of the first tasks of each split. */
  readonly tasksHash: string;
  /** The versions of the packages that the environment consists of, by name. */
  readonly packages: Readonly<Record<string, string>>;
}

/**
 * Returns an environment that is written in Python. Its processes end with this process, or when it is disposed of.
 * @throws UsageError with the file, the line and the remedy, if the environment cannot be loaded.
 */
export async function createPythonEnvironment(
  options: PythonEnvironmentOptions,
): Promise<PythonEnvironment> {
  const { environment: named, args = {}, processes = 1 } = options;
  const { onTrouble = (trouble) => process.emitWarning(trouble), onOutput = writeOutput } = options;
  const file = isPythonFile(named) ? named : undefined;
  if (file !== undefined && !existsSync(file)) {
    throw new UsageError(
      `Cannot find environment ${file}: ${path.resolve(file)} is absent, expected a Python file`,
    );
  }
  const { executable } = await findPython({ named: options.python, file });
  const report = (trouble: string): void => onTrouble(`environment ${named}: ${trouble}`);
  const pool = await PythonPool.start({
    executable,
    environment: named,
    args,
    processCount: processes,
    onTrouble: report,
    onOutput,
  });
  const { facts } = pool;
  const { name } = facts;
  const place = facts.definedAt === undefined ? name : `${name} (${shortPlace(facts.definedAt)})`;
  const tasks = nameTasks<PythonTask>(name, await readTasks(pool));
  const tools = toTools(facts.tools, report);
  const close = once(async () => await pool.close());
  return {
    name,
    source: facts.source === "" ? `Python, ${named}` : facts.source,
    splits: tasks.splits,
    tools: Array.from(tools.values(), ({ definition }) => definition),
    policyText: facts.policy,
    ...(facts.definedAt !== undefined && { definedAt: shortPlace(facts.definedAt) }),
    repeatable: facts.repeatable,
    user: userOf(pool, place),
    files: Object.keys(facts.files),
    tasksHash: facts.tasksHash,
    packages: facts.packages ?? {},
    task: (split, index) => tasks.task(split, index),
    async open(task, { user, signal, onCompared }) {
      signal.throwIfAborted();
      const { episode, opening } = await PythonEpisode.open(pool, {
        environment: place,
        task,
        signal,
      });
      const own = opening.tools && toTools(opening.tools, report);
      if (facts.kind === "tools") {
        return new PythonWorld({
          episode,
          task,
          user,
          tools: own ?? tools,
          policyText: opening.policy,
          onCompared,
        });
      }
      const shown = own && Array.from(own.values(), ({ definition }) => definition);
      try {
        const hasTools = (own ?? tools).size > 0;
        return new TurnWorld({
          episode,
          task,
          opening,
          policyText: facts.policy,
          tools: shown,
          hasTools,
        });
      } catch (error) {
        await episode.close(signal);
        throw error;
      }
    },
    [Symbol.asyncDispose]: close,
  };
}

/** Reads the tasks. Ends the processes if a task is wrong. */
async function readTasks(
  pool: PythonPool,
): Promise<Readonly<Record<string, readonly PythonTask[]>>> {
  try {
    return await pool.readTasks();
  } catch (error) {
    await pool.close();
    throw error;
  }
}

function userOf(pool: PythonPool, environment: string): User {
  if (pool.facts.user === "own") return createPythonUser(pool, environment);
  if (pool.facts.user === "none") return createScriptedUser({ lines: [""] });
  return toUser(pool.facts.name, undefined);
}

/** Returns `FILE:LINE` without the file's folders. */
function shortPlace(place: string): string {
  return place.replace(/^.*[/\\]/, "");
}

function writeOutput(text: string): void {
  process.stderr.write(text);
}
