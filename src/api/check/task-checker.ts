import { InvariantError, RolloutError, describeError } from "../../errors.ts";
import type { Action, Environment } from "../../environment/environment.ts";
import type { Task } from "../../task.ts";
import { placeOfThrow } from "../../text/source-place.ts";
import { checkTools, taskText } from "./check-declared.ts";
import { comparePlays } from "./compare-plays.ts";
import {
  callers,
  fittingAgent,
  idleAgent,
  patientAgent,
  talkers,
  type HostileAgent,
} from "./hostile-agents.ts";
import { nameOf } from "../../episode/judged-world.ts";
import { playAgent, type AgentSetup, type PlayedAgent } from "./play-agent.ts";
import { ProblemList, type EnvironmentProblem, type ProblemPlace } from "./problem-list.ts";
import { WantedMembers } from "./wanted-members.ts";

/** The result of a check. JSON-able. */
export interface EnvironmentCheck {
  /** At most 50 problems, errors first if there are more. */
  readonly problems: readonly EnvironmentProblem[];
  readonly errorCount: number;
  readonly warningCount: number;
  /** The number of tasks that were played. */
  readonly taskCount: number;
  /** The number of tasks in all splits. */
  readonly totalTaskCount: number;
  /** The number of tools in the played tasks, by name. */
  readonly toolCount: number;
  readonly episodeCount: number;
  /** The number of actions: calls and messages. */
  readonly stepCount: number;
  /** The number of calls of tools. */
  readonly callCount: number;
}

/** Plays the tasks of an environment, and collects the problems. */
export class TaskChecker {
  readonly problems = new ProblemList();
  readonly #setup: AgentSetup;
  readonly #wanted = new WantedMembers();
  readonly #toolNames: Set<string>;
  /** The names of what did not answer within the time limit. It is not tried again. */
  readonly #hung = new Set<string>();
  readonly #idleRewards: (number | null)[] = [];
  /** The task that is being played. */
  #task: Task | undefined;
  /** Its JSON after the latest answer. */
  #taskText = "";
  /** True if it changed. Its episodes cannot be compared then. */
  #isTaskChanged = false;
  #episodeCount = 0;
  #stepCount = 0;
  #callCount = 0;

  constructor(setup: AgentSetup) {
    this.#setup = setup;
    this.#toolNames = new Set(setup.environment.tools.map(({ name }) => name));
  }

  /** Records a problem of the task that is being played. */
  report(
    severity: EnvironmentProblem["severity"],
    problem: string,
    place: Omit<ProblemPlace, "task"> = {},
  ): void {
    this.problems.add(severity, problem, { task: this.#task, ...place });
  }

  /** Plays a task with an agent that does nothing, with each hostile agent, and with the first agent again. */
  async playTask(task: Task): Promise<void> {
    this.#task = task;
    this.#taskText = taskText(task);
    this.#isTaskChanged = false;
    const before = await this.#play(task, idleAgent);
    if (before === undefined) return;
    this.#idleRewards.push(before.score.reward);
    if (before.opening.trim() === "") {
      this.report(
        "warning",
        "the conversation begins with an empty text, expected what the user wants",
      );
    }
    const { environment } = this.#setup;
    const { tools } = before;
    if (tools !== environment.tools) this.#checkOwnTools(tools);
    const fitting = fittingAgent(tools);
    const compared = new Set([patientAgent, fitting]);
    let hasEnded = false;
    let isEndless = false;
    for (const [index, agent] of [...talkers, ...callers(tools), fitting].entries()) {
      if (agent.actions.some((action) => this.#hung.has(nameOf(action)))) continue;
      const first = await this.#play(task, agent, index);
      if (first === undefined) continue;
      const isOver = first.steps.at(-1)?.done !== undefined;
      hasEnded ||= isOver;
      // A world without a user ends by its own rules.
      isEndless ||= agent === patientAgent && !isOver && first.lines.length > 1;
      if (environment.repeatable === true || compared.has(agent)) {
        const second = await this.#play(task, agent, index);
        this.#compare(agent, first, second);
      }
    }
    if (isEndless && !hasEnded) this.#reportEndless();
    const after = await this.#play(task, idleAgent);
    if (after === undefined || this.#isTaskChanged) return;
    if (JSON.stringify(after.score) === JSON.stringify(before.score)) return;
    this.report(
      "error",
      "an agent that does nothing is scored differently after others have played " +
        `(${JSON.stringify(before.score.reward)}, then ${JSON.stringify(after.score.reward)}), ` +
        "expected each episode to have a state of its own",
    );
  }

  conclude(tasks: Pick<EnvironmentCheck, "taskCount" | "totalTaskCount">): EnvironmentCheck {
    const { problems } = this;
    const rewarded = this.#idleRewards.filter((reward) => reward !== null && reward > 0).length;
    if (rewarded > 0) {
      problems.add(
        "warning",
        `an agent that does nothing is rewarded in ${rewarded} of ${this.#idleRewards.length} tasks, ` +
          "expected that in few: it is what a policy learns first",
      );
    }
    this.#wanted.report(problems);
    const { errorCount, warningCount } = problems;
    return {
      problems: problems.listed,
      errorCount,
      warningCount,
      ...tasks,
      toolCount: this.#toolNames.size,
      episodeCount: this.#episodeCount,
      stepCount: this.#stepCount,
      callCount: this.#callCount,
    };
  }

  /** Checks the tools of a task that has its own. */
  #checkOwnTools(tools: Environment["tools"]): void {
    for (const { name } of tools) this.#toolNames.add(name);
    for (const message of checkTools(tools)) this.report("error", message);
  }

  #reportEndless(): void {
    this.report(
      "warning",
      `no episode ended: the user does not leave within ${patientAgent.actions.length} messages, and no call ended one, ` +
        "expected a line { text, leaves: true } (in Python None), a tool with `ends`, or isDone(); a run plays such an " +
        "episode up to its limit of turns",
    );
  }

  /** Compares two plays of an agent with the same seed. */
  #compare(agent: HostileAgent, first: PlayedAgent, second: PlayedAgent | undefined): void {
    if (second === undefined || this.#isTaskChanged) return;
    for (const { severity, message, kind } of comparePlays([first, second], this.#setup)) {
      this.report(severity, message, { before: `an agent that ${agent.what}: `, kind });
    }
  }

  /** Plays an agent, and records its failure as a problem. */
  async #play(task: Task, agent: HostileAgent, seed = 0): Promise<PlayedAgent | undefined> {
    this.#episodeCount += 1;
    this.#setup.loops?.note(`task ${task.id}: an agent that ${agent.what}: its episode`);
    const before = `an agent that ${agent.what}: `;
    let latest: Action | undefined;
    try {
      return await playAgent(
        this.#setup,
        { task, agent, seed },
        {
          onAnswer: (called) => {
            const text = taskText(task);
            if (text === this.#taskText) return;
            this.report("error", changedTask(called), { before });
            this.#taskText = text;
            this.#isTaskChanged = true;
          },
          onStep: (action) => {
            latest = action;
            this.#setup.loops?.note(`task ${task.id}: ${before}${nameOf(action)}`);
            this.#stepCount += 1;
            if (action.type === "call") this.#callCount += 1;
          },
          onCompared: (compared) => this.#wanted.add(compared, task),
          onProblem: (severity, problem) => this.report(severity, problem, { before }),
        },
      );
    } catch (error) {
      this.#setup.signal.throwIfAborted();
      if (latest !== undefined && isTimeout(error)) this.#hung.add(nameOf(latest));
      const loop = this.#setup.loops?.takePlace();
      const failure = describeFailure(error);
      // The place of the loop is known, so the guess of a cause is left out.
      const looping = (place: string) =>
        `${failure.replace(/, expected one \(.*$/, "")}: it runs without end at ${place}`;
      this.report("error", loop === undefined ? failure : looping(loop), {
        before,
        remedy: remedyOf(error),
      });
      return undefined;
    }
  }
}

function changedTask(called: string): string {
  return (
    `${called} changes the task, which all attempts at it share, expected an unchanged one ` +
    "(copy what you change)"
  );
}

function describeFailure(error: unknown): string {
  const hint = error instanceof InvariantError ? " (it would stop the whole run)" : "";
  const message = describeError(error);
  const cause = error instanceof RolloutError ? error.cause : undefined;
  const place = placeOfThrow(cause);
  return `${message}${place === undefined || message.includes(place) ? "" : ` at ${place}`}${hint}`;
}

/** Returns the expected behaviour where a failure's message does not name it. */
function remedyOf(error: unknown): string {
  return isTimeout(error)
    ? "expected an answer within the time limit (--timeout)"
    : "expected no exception: refuse() answers a mistake of the model, and a user or a score must not fail";
}

function isTimeout(error: unknown): boolean {
  return error instanceof RolloutError && error.code.endsWith("/timeout");
}
