import { describe } from "../../episode/check/foreign-value.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { reportUnhandledRejections } from "../../async/pass-over-floating.ts";
import type { Environment } from "../../environment/environment.ts";
import { defaultScript, createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import { LoopWatch } from "./loop-watch.ts";
import { checkTasks, checkTools } from "./check-declared.ts";
import type { AgentSetup } from "./play-agent.ts";
import { TaskChecker, type EnvironmentCheck } from "./task-checker.ts";

/** Options of `checkEnvironment()`. */
export interface CheckOptions {
  /** The user. Default: the environment's user, otherwise one that states the task. */
  readonly user?: User;
  /** The number of tasks to play in each split, spread evenly over it, or `all`. Default 3. */
  readonly taskCount?: number | "all";
  /** The time limit of one call, in milliseconds. Default 10 000. */
  readonly timeoutMs?: number;
  /** The clock for time limits. Default: the machine's clock. */
  readonly clock?: Pick<Clock, "after" | "now">;
  readonly signal?: AbortSignal;
  /**
   * True to end code that never gives back control, such as an endless loop. It is reported with its file and line.
   * Only in the main thread. Default false: such code hangs.
   */
  readonly endsLoops?: boolean;
}

/** The default time limit of a call, in milliseconds. */
const defaultTimeoutMs = 10_000;

/** The time that a call's own limit has before its code is ended, in milliseconds. */
const graceMs = 1_000;

/**
 * Plays an environment with agents that make mistakes, and reports what would spoil a run: code that throws or hangs
 * on a model's mistake, invalid answers and lines, tasks that differ between draws, answers that differ for the same
 * seed, and episodes that share state. The environment and its user are called and judged as in a run. An environment
 * passes if it has no problem of severity `error`.
 */
export async function checkEnvironment(
  environment: Environment,
  options: CheckOptions = {},
): Promise<EnvironmentCheck> {
  using loops = options.endsLoops === true ? watchLoops(environment, options) : undefined;
  const checker = new TaskChecker({ ...setupOf(environment, options), loops });
  const { problems } = checker;
  using _floating = reportUnhandledRejections((line) => checker.report("error", line));
  for (const message of checkTools(environment.tools)) problems.add("error", message);
  const policyText: unknown = environment.policyText;
  if (typeof policyText !== "string") {
    problems.add("error", `its policyText is ${describe(policyText)}, expected a text`);
  }
  const { taskCount = 3 } = options;
  const count = taskCount === "all" ? Number.POSITIVE_INFINITY : taskCount;
  const { tasks, totalCount, problems: found } = checkTasks(environment, count);
  for (const message of found) problems.add("error", message);
  for (const task of tasks) {
    await checker.playTask(task);
    // Node reports an unawaited promise between rounds of its event loop, so at least one round
    // must pass.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return checker.conclude({ taskCount: tasks.length, totalTaskCount: totalCount });
}

/** Ends code that runs without end, and reports it if nothing else does. */
export function watchLoops(
  { name }: Pick<Environment, "name">,
  { timeoutMs = defaultTimeoutMs }: Pick<CheckOptions, "timeoutMs">,
): LoopWatch | undefined {
  return LoopWatch.start({
    limitMs: timeoutMs + graceMs,
    onLost: (place, call) =>
      process.stderr.write(
        `turnwright: Cannot check ${name}: ${call === "" ? "it" : call} runs without end at ${place}\n`,
      ),
  });
}

function setupOf(environment: Environment, options: CheckOptions): AgentSetup {
  const own = (environment as { readonly user?: User }).user;
  const { clock = systemClock, signal = new AbortController().signal } = options;
  return {
    environment,
    user: options.user ?? own ?? createScriptedUser({ lines: defaultScript }),
    clock,
    timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
    signal,
  };
}
