import { environmentOf, type EnvironmentFlags } from "./environment-flags.ts";
import {
  checkEnvironment,
  watchLoops,
  type CheckOptions,
} from "../../api/check/check-environment.ts";
import type { EnvironmentCheck } from "../../api/check/task-checker.ts";
import type { EnvironmentConfig } from "../../composition/config/scope-config.ts";
import type { Environment } from "../../environment/environment.ts";
import type { User } from "../../user/user.ts";
import { loadEnvironment, loadOwnUser } from "../../composition/environment/environments.ts";
import { isPythonEnvironment } from "../../environment/python/python-name.ts";
import { plainStyle, printable, terminalStyle } from "../../report/text-style.ts";
import { stopOnInterrupt, stopsAtOnce } from "../interrupt.ts";
import { writeOut } from "../write-out.ts";
import { countOf } from "../../text/count-of.ts";
import { formatCount } from "../../text/format-count.ts";

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
  const timing = { ...(flags.timeout !== undefined && { timeoutMs: flags.timeout * 1000 }) };
  // An environment in Python runs in processes of its own, which end code without end themselves.
  const endsLoops = !isPythonEnvironment(name);
  const { environment, user } = await loadWatched(config, { ...timing, endsLoops });
  const check = await checkEnvironment(environment, {
    ...(user !== undefined && { user }),
    ...(flags.tasks !== undefined && { taskCount: flags.tasks }),
    ...timing,
    signal: stopOnInterrupt(stopsAtOnce),
    endsLoops,
  });
  if (flags.json === true) {
    const ok = check.errorCount === 0;
    await writeOut(`${JSON.stringify({ environment: environment.name, ok, ...check })}\n`);
  } else {
    await writeOut(checkText(environment.name, check, { isTerminal: process.stdout.isTTY }));
  }
  return check.errorCount > 0 ? 1 : 0;
}

/** Loads an environment and its user, and ends a module that loops without end. */
async function loadWatched(
  config: EnvironmentConfig,
  { endsLoops, ...timing }: Pick<CheckOptions, "timeoutMs" | "endsLoops">,
): Promise<{ readonly environment: Environment; readonly user: User | undefined }> {
  using loops = endsLoops === true ? watchLoops(config, timing) : undefined;
  loops?.unref();
  return { environment: await loadEnvironment(config), user: await loadOwnUser(config) };
}

/**
 * Returns a line for each problem. A terminal gets a table after them, and a pipe a line with the counts.
 * @param environment - Its name.
 */
export function checkText(
  environment: string,
  check: EnvironmentCheck,
  { isTerminal }: { readonly isTerminal: boolean },
): string {
  const { problems, errorCount, warningCount } = check;
  const style = isTerminal ? terminalStyle : plainStyle;
  const lines = problems.map(({ severity, message }) => {
    const name = severity === "error" ? style.warning(`${severity}:`) : `${severity}:`;
    return `${name} ${printable(message)}\n`;
  });
  const unlisted = errorCount + warningCount - problems.length;
  if (unlisted > 0) lines.push(`${formatCount(unlisted)} more problems are not listed\n`);
  const gap = isTerminal && lines.length > 0 ? "\n" : "";
  return `${lines.join("")}${gap}${isTerminal ? tableText(environment, check) : countsLine(environment, check)}`;
}

function countsLine(environment: string, check: EnvironmentCheck): string {
  const { errorCount, warningCount, episodeCount, stepCount } = check;
  return (
    `${environment}: ${playedOf(check)}${moreTasks(check)}, ${countOf(episodeCount, "episode")}, ` +
    `${countOf(stepCount, "step")}; ${countOf(errorCount, "error")}, ${countOf(warningCount, "warning")}\n`
  );
}

function tableText(environment: string, check: EnvironmentCheck): string {
  const columns: readonly (readonly [name: string, value: string])[] = [
    ["environment", environment],
    ["tasks", playedOf(check).replace(/ tasks$/, "")],
    ["tools", formatCount(check.toolCount)],
    ["calls tried", formatCount(check.callCount)],
    ["errors", formatCount(check.errorCount)],
    ["warnings", formatCount(check.warningCount)],
  ];
  const row = (cells: readonly string[]): string => {
    const padded = cells.map((cell, index) => {
      const width = Math.max(...columns[index]!.map(({ length }) => length));
      return index === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    return `${padded.join("  ")}\n`;
  };
  const more = moreTasks(check).trim();
  return (
    terminalStyle.heading(row(columns.map(([name]) => name)).trimEnd()) +
    `\n${row(columns.map(([, value]) => value))}${more === "" ? "" : `${more.slice(1, -1)}\n`}`
  );
}

function playedOf({ taskCount, totalTaskCount }: EnvironmentCheck): string {
  const total = formatCount(totalTaskCount);
  if (taskCount === totalTaskCount) return `all ${total} tasks`;
  return `${formatCount(taskCount)} of ${total} tasks`;
}

/** Says how to play more tasks if only a part was played. */
function moreTasks({ taskCount, totalTaskCount }: EnvironmentCheck): string {
  return taskCount === totalTaskCount ? "" : " (--tasks N|all plays more)";
}
