import { InvariantError, RolloutError, describeError } from "../errors.ts";
import type { Action, Environment, Score, World } from "../environment/environment.ts";
import { crossBoundary, suspectOf } from "../episode/boundary.ts";
import { CallWatch } from "../episode/turn/call-watch.ts";
import { checkOpening, checkScore, checkStep, checkWorld } from "../episode/check/check-foreign.ts";
import { describe } from "../episode/check/foreign-value.ts";
import { systemClock, type Clock } from "../async/clock.ts";
import type { Task } from "../task.ts";
import { defaultScript, createScriptedUser } from "../user/scripted-user.ts";
import type { User } from "../user/user.ts";
import { checkTasks, checkTools } from "./check-declared.ts";
import { reportUnhandledRejections } from "../async/pass-over-floating.ts";
import { hostileAgents, type HostileAgent } from "./hostile-actions.ts";

/** A problem of an environment that spoils a run, or may spoil it. JSON-able. */
export interface EnvironmentProblem {
  /** A `warning` may be intended. */
  readonly severity: "error" | "warning";
  /** The problem, its place and the expected behaviour, in one line. */
  readonly message: string;
}

/** The result of a check. JSON-able. */
export interface EnvironmentCheck {
  readonly problems: readonly EnvironmentProblem[];
  /** The number of tasks that were played. */
  readonly taskCount: number;
  /** The number of tasks in all splits. */
  readonly totalTaskCount: number;
  readonly episodeCount: number;
  readonly stepCount: number;
}

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
}

/** The largest number of problems that a check reports. */
const mostProblems = 50;

/**
 * Plays an environment with agents that make mistakes, and reports what would spoil a run: code that throws or hangs
 * on a model's mistake, invalid answers, tasks that differ between draws, and episodes that share state. An
 * environment passes if it has no problem of severity `error`.
 */
export async function checkEnvironment(
  environment: Environment,
  options: CheckOptions = {},
): Promise<EnvironmentCheck> {
  const checker = new Checker(environment, options);
  using _floating = reportUnhandledRejections((line) => checker.add("error", line));
  for (const message of checkTools(environment.tools)) checker.add("error", message);
  const policyText: unknown = environment.policyText;
  if (typeof policyText !== "string") {
    checker.add("error", `its policyText is ${describe(policyText)}, expected a text`);
  }
  const { taskCount = 3 } = options;
  const count = taskCount === "all" ? Number.POSITIVE_INFINITY : taskCount;
  const { tasks, totalCount, problems } = checkTasks(environment, count);
  for (const message of problems) checker.add("error", message);
  for (const task of tasks) {
    await checker.playTask(task);
    // Node reports an unawaited promise between rounds of its event loop, so at least one round
    // must pass.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return checker.conclude({ taskCount: tasks.length, totalTaskCount: totalCount });
}

/** The results of an agent in one episode. A member is `undefined` if its part failed. */
interface PlayedAgent {
  readonly observations: readonly string[];
  readonly score: Score;
}

class Checker {
  readonly #environment: Environment;
  readonly #user: User;
  readonly #options: CheckOptions;
  /** The problems by description, each with the tasks that had it. */
  readonly #problems = new Map<string, EnvironmentProblem & { readonly tasks: Set<string> }>();
  readonly #hung = new Set<string>();
  readonly #idleRewards: (number | null)[] = [];
  #episodeCount = 0;
  #stepCount = 0;

  constructor(environment: Environment, options: CheckOptions) {
    this.#environment = environment;
    const own = (environment as { readonly user?: User }).user;
    this.#user = options.user ?? own ?? createScriptedUser({ lines: defaultScript });
    this.#options = options;
  }

  /**
   * Records a problem once, with the first task that met it and the actions of that agent (`before`).
   */
  add(
    severity: EnvironmentProblem["severity"],
    problem: string,
    { task, before = "" }: { readonly task?: Task; readonly before?: string } = {},
  ): void {
    const line = problem.replaceAll(/\s*\n\s*/g, " ");
    const key = task === undefined ? line : line.replaceAll(task.id, "TASK");
    const known = this.#problems.get(key);
    if (known !== undefined) {
      if (task !== undefined) known.tasks.add(task.id);
      return;
    }
    if (this.#problems.size >= mostProblems) return;
    const tasks = new Set(task === undefined ? [] : [task.id]);
    this.#problems.set(key, { severity, message: `${before}${line}`, tasks });
  }

  /**
   * Plays a task with an agent that does nothing, with each hostile agent, and with the first
   * hostile agent again.
   */
  async playTask(task: Task): Promise<void> {
    const idle: HostileAgent = { what: "does nothing", actions: [] };
    const before = await this.#play(task, idle);
    if (before === undefined) return;
    this.#idleRewards.push(before.score.reward);
    for (const agent of hostileAgents(await this.#toolsOf(task))) {
      // An action that timed out for one agent is not tried again.
      if (agent.actions.some((action) => this.#hung.has(nameOf(action)))) continue;
      const first = await this.#play(task, agent);
      if (this.#environment.repeatable !== true || first === undefined) continue;
      const second = await this.#play(task, agent);
      if (second === undefined || JSON.stringify(first) === JSON.stringify(second)) continue;
      this.add(
        "error",
        `task ${task.id}: an agent that ${agent.what} is answered or scored differently the second time, ` +
          "expected the same (the environment says that it is repeatable)",
        { task },
      );
    }
    const after = await this.#play(task, idle);
    if (after === undefined || JSON.stringify(after.score) === JSON.stringify(before.score)) return;
    this.add(
      "error",
      `task ${task.id}: an agent that does nothing is scored differently after others have played ` +
        `(${JSON.stringify(before.score.reward)}, then ${JSON.stringify(after.score.reward)}), ` +
        "expected each episode to have a state of its own",
      { task },
    );
  }

  conclude(tasks: Pick<EnvironmentCheck, "taskCount" | "totalTaskCount">): EnvironmentCheck {
    const rewarded = this.#idleRewards.filter((reward) => reward !== null && reward > 0).length;
    if (rewarded > 0) {
      this.add(
        "warning",
        `an agent that does nothing is rewarded in ${rewarded} of ${this.#idleRewards.length} tasks, ` +
          "expected that in few: it is what a policy learns first",
      );
    }
    const counts = { episodeCount: this.#episodeCount, stepCount: this.#stepCount };
    const problems = [...this.#problems.values()].map(({ severity, message, tasks: met }) => {
      const others = met.size > 1 ? `; the same in ${met.size - 1} more of the tasks` : "";
      return { severity, message: `${message}${others}` };
    });
    return { problems, ...tasks, ...counts };
  }

  /** Returns the tools of a task. Some environments have different tools for each task. */
  async #toolsOf(task: Task): Promise<Environment["tools"]> {
    let own: World["tools"];
    await this.#attempt(task, "is asked for its tools", async (cross) => {
      await this.#within(task, cross, async (world) => {
        own = world.tools;
      });
    });
    if (own === undefined) return this.#environment.tools;
    for (const message of checkTools(own))
      this.add("error", `task ${task.id}: ${message}`, { task });
    return own;
  }

  async #play(task: Task, { what, actions }: HostileAgent): Promise<PlayedAgent | undefined> {
    this.#episodeCount += 1;
    return await this.#attempt(task, what, async (cross) => {
      const observations: string[] = [];
      let score: Score | undefined;
      await this.#within(task, cross, async (world) => {
        const opening = await cross("environment", "begin the conversation", (signal) =>
          world.begin({ signal }),
        );
        checkOpening(opening, "world.begin()");
        for (const action of actions) {
          const step = await this.#step(world, action, cross);
          observations.push(step.observation);
          if (step.done !== undefined) break;
        }
        const result = await cross("grader", "score", (signal) => world.score({ signal }));
        score = checkScore(result, "world.score()");
      });
      return score === undefined ? undefined : { observations, score };
    });
  }

  async #step(world: World, action: Action, cross: Cross) {
    this.#stepCount += 1;
    const hash = async () =>
      await cross("environment", "hash the state", (signal) => world.stateHash?.({ signal }));
    const before = await hash();
    const name = nameOf(action);
    const work = (signal: AbortSignal) => world.step(action, { signal });
    const answer = await cross("environment", `answer ${name}`, work).catch((error: unknown) => {
      if (isTimeout(error)) this.#hung.add(nameOf(action));
      throw error;
    });
    const step = checkStep(answer, `world.step() for ${name}`);
    if (step.isError === true && before !== (await hash())) {
      this.add(
        "error",
        `${name} says that it refused, and has changed the state all the same, expected no change`,
      );
    }
    return step;
  }

  /** Opens a world, awaits the work, and disposes of the world. */
  async #within(task: Task, cross: Cross, work: (world: World) => Promise<void>): Promise<void> {
    const session = this.#user.open(task, { seed: 0 });
    const opened = await cross("environment", "open", async (signal) => {
      return await this.#environment.open(task, { user: session, signal });
    });
    const world = checkWorld(opened, `open() of ${this.#environment.name}`);
    const dispose = async () =>
      await cross("environment", "dispose of the world", async (signal) => {
        await world[Symbol.asyncDispose]({ signal });
      });
    try {
      await work(world);
    } catch (error) {
      // The first failure is the one to report.
      await dispose().catch(() => undefined);
      throw error;
    }
    await dispose();
  }

  /** Describes a call to the environment, and the part to look at if the call does not return. */
  #named(doing: string): { readonly what: string; readonly suspect?: string } {
    const environment = this.#environment;
    if (doing === "open") return { what: doing, suspect: suspectOf(environment, "open") };
    if (doing === "score") return { what: doing, suspect: suspectOf(environment, "score") };
    if (!doing.startsWith("dispose")) return { what: doing };
    return { what: doing, suspect: suspectOf(environment, "dispose") };
  }

  /** Runs an agent's actions and records each failure as a problem. */
  async #attempt<Result>(
    task: Task,
    what: string,
    work: (cross: Cross) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { clock = systemClock, signal = new AbortController().signal } = this.#options;
    const timeoutMs = this.#options.timeoutMs ?? 10_000;
    using watch = new CallWatch(signal, clock);
    try {
      return await work((party, doing, call) =>
        crossBoundary(watch, { party, ...this.#named(doing), timeoutMs }, call),
      );
    } catch (error) {
      signal.throwIfAborted();
      if (isScriptAtItsEnd(error)) return undefined;
      const hint = error instanceof InvariantError ? " (it would stop the whole run)" : "";
      const problem = `${describeError(error)}${hint}`;
      this.add("error", problem, { task, before: `an agent that ${what}: ` });
      return undefined;
    }
  }
}

/** Calls the environment or the grader with a time limit. */
type Cross = <Result>(
  party: "environment" | "grader",
  doing: string,
  call: (signal: AbortSignal) => Result | Promise<Result>,
) => Promise<Result>;

function nameOf(action: Action): string {
  return action.type === "say" ? "what is said" : `tool ${action.name}`;
}

function isTimeout(error: unknown): boolean {
  return error instanceof RolloutError && error.code.endsWith("/timeout");
}

/** True if a scripted user has no more lines for an agent that continues to talk. */
function isScriptAtItsEnd(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === "user/script-exhausted";
}
