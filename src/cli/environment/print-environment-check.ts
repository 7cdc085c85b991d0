import { environmentOf, type EnvironmentFlags } from "./environment-flags.ts";
import { checkEnvironment } from "../../api/check-environment.ts";
import { loadEnvironment, loadOwnUser } from "../../composition/environment/environments.ts";
import { stopOnInterrupt } from "../interrupt.ts";
import { formatCount } from "../progress-line.ts";
import { writeOut } from "../write-out.ts";

/** Flags of `turnwright env check`. */
export interface CheckFlags extends EnvironmentFlags {
  /** The number of tasks of each split. */
  readonly tasks?: number | "all";
  /** The time limit of a call, in seconds. */
  readonly timeout?: number;
  readonly json?: boolean;
}

/**
 * Checks an environment by its name or module, and prints the problems. Returns the exit status: 1
 * if there is an error.
 */
export async function printEnvironmentCheck(name: string, flags: CheckFlags): Promise<0 | 1> {
  const config = environmentOf(name, flags);
  const environment = await loadEnvironment(config);
  const user = await loadOwnUser(config);
  const check = await checkEnvironment(environment, {
    ...(user !== undefined && { user }),
    ...(flags.tasks !== undefined && { taskCount: flags.tasks }),
    ...(flags.timeout !== undefined && { timeoutMs: flags.timeout * 1000 }),
    signal: stopOnInterrupt(),
  });
  const { problems, taskCount, totalTaskCount, episodeCount, stepCount } = check;
  const errorCount = problems.filter(({ severity }) => severity === "error").length;
  if (flags.json === true) {
    await writeOut(`${JSON.stringify({ environment: environment.name, ...check })}\n`);
  } else {
    for (const { severity, message } of problems) await writeOut(`${severity}: ${message}\n`);
    await writeOut(
      `${environment.name}: ${playedOf(taskCount, totalTaskCount)}, ${formatCount(episodeCount)} episodes, ` +
        `${formatCount(stepCount)} steps; ` +
        `${errorCount} errors, ${problems.length - errorCount} warnings\n`,
    );
  }
  return errorCount > 0 ? 1 : 0;
}

/** Describes the number of played tasks. Says how to play more if it is a sample. */
function playedOf(taskCount: number, totalCount: number): string {
  const total = formatCount(totalCount);
  if (taskCount === totalCount) return `all ${total} tasks`;
  return `${formatCount(taskCount)} of ${total} tasks (--tasks N|all plays more)`;
}
