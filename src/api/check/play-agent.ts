import type { Clock } from "../../async/clock.ts";
import type { Action, Environment, Score, Step, World } from "../../environment/environment.ts";
import type { ComparedMembers } from "../../environment/compared-members.ts";
import { crossBoundary, suspectOf, type Boundary } from "../../episode/boundary.ts";
import { checkOpening, checkScore, checkStep } from "../../episode/check/check-foreign.ts";
import {
  disposeForeignWorld,
  openForeignWorld,
  type WorldTerms,
} from "../../episode/foreign-world.ts";
import { openSession } from "../../episode/open-session.ts";
import { askUsage } from "../../episode/turn/ask-usage.ts";
import { CallWatch } from "../../episode/turn/call-watch.ts";
import { UserCallTracker } from "../../episode/turn/user-call-tracker.ts";
import { RolloutError } from "../../errors.ts";
import type { Task } from "../../task.ts";
import type { User, UserLine, UserSession } from "../../user/user.ts";
import type { HostileAgent } from "./hostile-agents.ts";

/** The setting of a check's episodes. */
export interface AgentSetup {
  readonly environment: Environment;
  readonly user: User;
  readonly clock: Pick<Clock, "after" | "now">;
  /** The time limit of each call, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Gets the events of an episode. */
export interface AgentEvents {
  /** Called after the answers of the user, and at the end, with the name of what was called, such as `user.reply()`. */
  readonly onAnswer: (called: string) => void;
  readonly onStep: (action: Action) => void;
  readonly onCompared: (compared: ComparedMembers) => void;
  /** Gets a problem that ends no episode. */
  readonly onProblem: (severity: "error" | "warning", problem: string) => void;
}

/** The results of an agent in one episode. */
export interface PlayedAgent {
  /** The user's lines, in order. */
  readonly lines: readonly UserLine[];
  readonly opening: string;
  readonly steps: readonly Step[];
  readonly score: Score;
  /** The tools of the task. */
  readonly tools: Environment["tools"];
}

/**
 * Plays an agent's actions as a run plays a policy's turns: with the run's limits of time and its checks of each answer.
 *
 * @throws RolloutError that names the responsible party.
 */
export async function playAgent(
  setup: AgentSetup,
  {
    task,
    agent,
    seed,
  }: { readonly task: Task; readonly agent: HostileAgent; readonly seed: number },
  events: AgentEvents,
): Promise<PlayedAgent> {
  const { environment, user, clock, timeoutMs, signal } = setup;
  using watch = new CallWatch(signal, clock);
  const userCalls = new UserCallTracker({ taskId: task.id, strategy: user.strategy, timeoutMs });
  const session = await openSession(watch, { user, task, seed, timeoutMs });
  events.onAnswer("user.open()");
  const lines: UserLine[] = [];
  const heard = noting(userCalls.watched(session), (line, called) => {
    lines.push(line);
    events.onAnswer(called);
  });
  const { onCompared } = events;
  const terms = { environment, task, watch, clock, userCalls, timeoutMs, onCompared };
  const dispose = async (world: World): Promise<void> => await disposeForeignWorld(terms, world);
  const world = await openForeignWorld(terms, heard, { dispose });
  let played: PlayedAgent;
  try {
    played = await new AgentEpisode(terms, world, events).play(agent, lines);
  } catch (error) {
    // The first failure is the one to report.
    await dispose(world).catch(() => undefined);
    throw error;
  }
  await dispose(world);
  await askUsage({ setup: { user, limits: { userTimeoutMs: timeoutMs } }, watch }, session).catch(
    (error: unknown) => {
      if (!(error instanceof RolloutError)) throw error;
      // A run goes on without the figures.
      events.onProblem("warning", error.message);
    },
  );
  return played;
}

/** Calls back with each line that the user says. */
function noting(session: UserSession, note: (line: UserLine, called: string) => void): UserSession {
  const noted = async <Line extends UserLine>(
    called: string,
    line: Promise<Line>,
  ): Promise<Line> => {
    const said = await line;
    note(said, called);
    return said;
  };
  return {
    begin: async (options) => await noted("user.begin()", session.begin(options)),
    reply: async (text, options) => await noted("user.reply()", session.reply(text, options)),
    ...(session.retake && {
      retake: async (options) => await noted("user.retake()", session.retake!(options)),
    }),
    usage: () => session.usage(),
  };
}

/** One episode of an agent in an open world. */
class AgentEpisode {
  readonly #terms: WorldTerms;
  readonly #world: World;
  readonly #events: AgentEvents;

  constructor(terms: WorldTerms, world: World, events: AgentEvents) {
    this.#terms = terms;
    this.#world = world;
    this.#events = events;
  }

  async play({ actions }: HostileAgent, lines: readonly UserLine[]): Promise<PlayedAgent> {
    const world = this.#world;
    const { environment } = this.#terms;
    const opening = await this.#cross({ doing: "begin the conversation" }, async (signal) =>
      checkOpening(await world.begin({ signal }), "world.begin()"),
    );
    const steps: Step[] = [];
    for (const action of actions) {
      const step = await this.#step(action);
      steps.push(step);
      if (step.done !== undefined) break;
    }
    const suspect = suspectOf(environment, "score");
    const score = await this.#cross(
      { party: "grader", doing: "score", suspect },
      async (signal) => {
        // Each action is a turn.
        const actionCounts = steps.map(() => 1);
        return checkScore(
          await world.score({ signal, actionCounts }),
          "world.score()",
          steps.length,
        );
      },
    );
    this.#events.onAnswer("the environment (a tool, or score())");
    return { lines, opening, steps, score, tools: world.tools ?? environment.tools };
  }

  async #step(action: Action): Promise<Step> {
    const world = this.#world;
    this.#events.onStep(action);
    const hash = async (): Promise<string | undefined> =>
      await this.#cross(
        { doing: "hash the state" },
        async (signal) => await world.stateHash?.({ signal }),
      );
    const before = await hash();
    const name = nameOf(action);
    const step = await this.#cross({ doing: `answer ${name}` }, async (signal) =>
      checkStep(await world.step(action, { signal }), `world.step() for ${name}`),
    );
    if (step.isError === true && before !== (await hash())) {
      this.#events.onProblem(
        "error",
        `${name} says that it refused, and has changed the state all the same, expected no change`,
      );
    }
    return step;
  }

  /** Calls the world, which may wait for the user. */
  async #cross<Result>(
    { party = "environment", doing, suspect }: Partial<Boundary> & { readonly doing: string },
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { timeoutMs, userCalls, watch } = this.#terms;
    const waitsFor = userCalls.watchCall(watch);
    const named = suspect === undefined ? {} : { suspect };
    return await crossBoundary(watch, { party, what: doing, ...named, waitsFor, timeoutMs }, work);
  }
}

/** Returns the name of what an action uses, such as `tool set_lamp`. */
export function nameOf(action: Action): string {
  return action.type === "say" ? "what is said" : `tool ${action.name}`;
}
