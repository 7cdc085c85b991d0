import type { Clock } from "../../async/clock.ts";
import type { Action, Environment, Score, Step } from "../../environment/environment.ts";
import type { ComparedMembers } from "../../environment/compared-members.ts";
import { JudgedWorld, nameOf } from "../../episode/judged-world.ts";
import { RolloutError } from "../../errors.ts";
import type { Task } from "../../task.ts";
import type { User, UserLine, UserSession } from "../../user/user.ts";
import type { LoopWatch } from "./loop-watch.ts";
import type { HostileAgent } from "./hostile-agents.ts";

/** The setting of a check's episodes. */
export interface AgentSetup {
  readonly environment: Environment;
  readonly user: User;
  readonly clock: Pick<Clock, "after" | "now">;
  /** The time limit of each call, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Ends code that never gives back control. Absent: such code hangs. */
  readonly loops?: LoopWatch | undefined;
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
  const { environment } = setup;
  const lines: UserLine[] = [];
  const world = await JudgedWorld.open({
    ...setup,
    task,
    seed,
    wrap: (session) => {
      events.onAnswer("user.open()");
      return noting(session, (line, called) => {
        lines.push(line);
        events.onAnswer(called);
      });
    },
    onCompared: events.onCompared,
  });
  let played: PlayedAgent;
  try {
    played = await playActions(world, agent, { events, lines, environment });
    await checkUsage(world, events);
  } catch (error) {
    // The first failure is the one to report.
    await world[Symbol.asyncDispose]().catch(() => undefined);
    throw error;
  }
  await world[Symbol.asyncDispose]();
  return played;
}

/** Reports a cost of the user that cannot be read. A run continues without the figures. */
async function checkUsage(world: JudgedWorld, { onProblem }: AgentEvents): Promise<void> {
  try {
    await world.userUsage();
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    onProblem("warning", error.message);
  }
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

interface Episode {
  readonly events: AgentEvents;
  /** The user's lines so far. */
  readonly lines: readonly UserLine[];
  readonly environment: Environment;
}

async function playActions(
  world: JudgedWorld,
  { actions }: HostileAgent,
  { events, lines, environment }: Episode,
): Promise<PlayedAgent> {
  const opening = await world.begin();
  const steps: Step[] = [];
  for (const action of actions) {
    const step = await perform(world, action, events);
    steps.push(step);
    if (step.done !== undefined) break;
  }
  const score = await world.score();
  events.onAnswer("the environment (a tool, or score())");
  return { lines, opening, steps, score, tools: world.world.tools ?? environment.tools };
}

/** Performs an action. Reports a refusal that changes the state. */
async function perform(world: JudgedWorld, action: Action, events: AgentEvents): Promise<Step> {
  events.onStep(action);
  const before = await world.stateHash();
  const step = await world.step(action);
  if (step.isError === true && before !== (await world.stateHash())) {
    events.onProblem(
      "error",
      `${nameOf(action)} says that it refused, and has changed the state all the same, expected no change`,
    );
  }
  return step;
}
