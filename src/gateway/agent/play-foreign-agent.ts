import type { Score, Step, World } from "../../environment/environment.ts";
import { askUsage } from "../../episode/turn/ask-usage.ts";
import { crossBoundary, suspectOf, type Boundary } from "../../episode/boundary.ts";
import { CallWatch } from "../../episode/turn/call-watch.ts";
import { checkOpening, checkScore } from "../../episode/check/check-foreign.ts";
import {
  disposeForeignWorld,
  openForeignWorld,
  worldTermsOf,
} from "../../episode/foreign-world.ts";
import { openSession } from "../../episode/open-session.ts";
import { UserCallTracker } from "../../episode/turn/user-call-tracker.ts";
import { termsOf } from "../../episode/open-world.ts";
import { scoredEnd, type ScoreFields } from "../../episode/scored-end.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { RolloutError, type Party } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { startDeadline } from "../../async/deadline.ts";
import { noRedactor, type Redactor } from "../../secrets/redactor.ts";
import type { RolloutEnd, StopReason } from "../../trajectory/sample.ts";
import { noSpending } from "../../user/chat/add-spending.ts";
import type { UserSession, UserUsage } from "../../user/user.ts";
import type { GatewaySession } from "../session/session.ts";
import type { ForeignAgent, ForeignRun } from "./foreign-agent.ts";
import { TaskEndpoint } from "./task-endpoint.ts";

/** The policy's address, key and `fetch`, as the agent gets them. */
export type AgentPlace = Pick<ForeignRun, "baseUrl" | "apiKey" | "fetch">;

/** The connections of one attempt to its agent. */
interface AgentOpening {
  readonly place: AgentPlace;
  readonly useEndpoint: (endpoint: TaskEndpoint) => void;
  /**
   * Registers a callback that is called when the engine holds or releases one of the agent's policy
   * calls.
   */
  readonly useHold: (onHeld: (isHeld: boolean) => void) => void;
}

/** The result of one attempt, before its rows are collected. */
export interface PlayedAttempt {
  readonly end: RolloutEnd & ScoreFields;
  /** The user's usage. Absent if the attempt was interrupted. */
  readonly userUsage?: UserUsage;
}

/** One attempt while it is played. */
interface Attempt {
  readonly assignment: EpisodeAssignment;
  readonly setup: EpisodeSetup;
  readonly session: GatewaySession;
  readonly watch: CallWatch;
  /** Tracks the user requests that the world makes. */
  readonly userCalls: UserCallTracker;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Removes secrets from text for the agent. Default: no secrets are known. */
  readonly redactor?: Pick<Redactor, "thrown" | "without"> | undefined;
}

/**
 * Plays one attempt at a task with an external agent. The agent talks to the user, calls the environment's tools, and
 * samples the policy's turns in `session`.
 *
 * - An error or timeout of the agent, or an agent that never samples a turn, is a failure of the party `agent`.
 * - A failure of the engine, the user or the environment counts as theirs, even if the agent handles the error.
 * - A limit of the policy ends the attempt as `truncated`, as for built-in agents.
 *
 * @throws the signal's reason if it is aborted.
 */
export async function playForeignAgent(
  agent: ForeignAgent,
  attempt: Omit<Attempt, "watch" | "userCalls" | "clock">,
  open: AgentOpening,
): Promise<PlayedAttempt> {
  const { setup, signal } = attempt;
  const { clock = systemClock } = setup;
  using watch = new CallWatch(signal, clock);
  const userCalls = new UserCallTracker({
    taskId: attempt.assignment.task.id,
    strategy: setup.user.strategy,
    timeoutMs: setup.limits.userTimeoutMs,
  });
  const play: Attempt = { ...attempt, watch, userCalls, clock };
  let user: UserSession | undefined;
  let end: PlayedAttempt["end"];
  try {
    user = await openUser(play);
    const world = await openWorld(play, userCalls.watched(user));
    try {
      end = await runAndScore(agent, play, { ...open, world });
    } finally {
      await dispose(play, world);
    }
  } catch (error) {
    watch.throwIfAborted();
    if (!(error instanceof RolloutError)) throw error;
    setup.onTrouble?.(error);
    end = { outcome: "failed", stopReason: "failure", failure: error.toFailure() };
  }
  return { end, userUsage: await usageOf(play, user) };
}

async function runAndScore(
  agent: ForeignAgent,
  play: Attempt,
  open: AgentOpening & { readonly world: World },
): Promise<PlayedAttempt["end"]> {
  const { world } = open;
  const done = await runAgent(agent, play, open);
  if (done === "deadline") return { outcome: "truncated", stopReason: done };
  const { environment, limits } = play.setup;
  // A separate watch, because the agent's watch has expired after a timeout.
  using watch = new CallWatch(play.signal, play.clock);
  const score = await crossToWorld(
    { ...play, watch },
    ["grader", "score", limits.scoreTimeoutMs, suspectOf(environment, "score")],
    async (signal) =>
      withoutTurns(checkScore(await world.score({ signal }), placeOf(play, "world.score()"))),
  );
  return isTruncation(done)
    ? scoredEnd({ outcome: "truncated", stopReason: done }, score)
    : scoredEnd({ outcome: "completed", stopReason: done }, score);
}

/**
 * Returns the score of an agent that keeps its own conversations.
 *
 * @throws RolloutError `grader/bad-score` if the score has rewards of turns.
 */
function withoutTurns(score: Score): Score {
  if (score.turnRewards === undefined) return score;
  throw new RolloutError(
    "grader/bad-score",
    "Cannot use turnRewards: the agent keeps its conversations itself, and the environment does not see its turns; " +
      "leave turnRewards out if score() gets no turns",
  );
}

const truncations = ["max-turns", "max-tokens", "context-full", "deadline"] as const;

type Truncation = (typeof truncations)[number];

function isTruncation(reason: StopReason): reason is Truncation {
  return (truncations as readonly StopReason[]).includes(reason);
}

/**
 * Runs the agent.
 *
 * @returns the reason why it stopped.
 */
async function runAgent(
  agent: ForeignAgent,
  play: Attempt,
  open: AgentOpening & { readonly world: World },
): Promise<NonNullable<Step["done"]> | Truncation> {
  const { assignment, setup, session, signal, clock, redactor } = play;
  const { place, useEndpoint, useHold, world } = open;
  const { limits } = setup;
  const { task } = assignment;
  const { userCalls } = play;
  // The agent's run is one watched call, and its calls to the world are others at the same time.
  const ended = new AbortController();
  using stop = startDeadline({ ms: Infinity, parents: [signal, ended.signal] });
  using watch = new CallWatch(stop.signal, clock);
  const opening = {
    party: "environment",
    what: `begin task ${task.id}`,
    waitsFor: userCalls.watchCall(watch),
    timeoutMs: limits.userTimeoutMs,
  } as const;
  const clean = <Value>(value: Value): Value => redactor?.without(value) ?? value;
  const firstUserText = await crossBoundary(watch, opening, async (callSignal) =>
    clean(checkOpening(await world.begin({ signal: callSignal }), placeOf(play, "world.begin()"))),
  );
  const reading = ["environment", "read the terms of", limits.toolTimeoutMs] as const;
  const description = await cross(play, reading, () => {
    const { policyText, tools } = termsOf({ setup, redactor: redactor ?? noRedactor }, world);
    return { task, policyText, firstUserText, tools: [...tools] };
  });
  const { policyText } = description;
  // Turns that are sampled after this point cannot affect the reward, so they must not be trained.
  const onDone = (): void => session.finish(`the world of task ${task.id} is done`);
  const endpoint = new TaskEndpoint(description, {
    world,
    watch,
    userCalls,
    limits,
    onDone,
    ...(redactor !== undefined && { redactor }),
  });
  const tools = await cross(play, reading, () => endpoint.tools);
  useEndpoint(endpoint);
  let thrown: unknown;
  let isSampling = false;
  let isRunning = true;
  let heldCount = 0;
  // The agent's time limit pauses while any of its policy calls is held.
  useHold((isHeld) => {
    heldCount += isHeld ? 1 : -1;
    if (!isRunning) return;
    if (heldCount > 0) play.watch.pause();
    else play.watch.goOn();
  });
  try {
    const running = ["agent", "run the agent in", limits.episodeTimeoutMs] as const;
    await cross(play, running, async (runSignal) => {
      const recordSampling = (): void => void (isSampling = session.activeCount > 0);
      // Recorded before the agent sees the abort, after which it cancels its requests.
      runSignal.addEventListener("abort", recordSampling, { once: true });
      const run = { ...place, task, firstUserText, policyText, signal: runSignal };
      await agent.run({ ...run, tools, say: async (text) => await endpoint.say(text) });
    });
  } catch (error) {
    play.watch.throwIfAborted();
    thrown = error;
  } finally {
    isRunning = false;
  }
  // Turns that are sampled after this point are not part of the scored attempt.
  session.finish("the agent has ended");
  ended.abort(new DOMException("the agent has ended", "AbortError"));
  await endpoint.close();
  if (endpoint.failure !== undefined) throw endpoint.failure;
  const { setback } = session;
  // A failure of the engine is not the agent's, even if the agent threw because of it.
  if (setback?.type === "failure") throw setback.error;
  // An agent that returns normally may have shortened or abandoned the long conversation.
  const hasFinished = thrown === undefined && session.tree.nodes.length > 0;
  const isAbandoned =
    setback?.type === "limit" && setback.stopReason === "context-full" && hasFinished;
  if (setback?.type === "limit" && !isAbandoned) return setback.stopReason;
  // The world ended first, so that an error of the agent afterwards does not matter.
  if (endpoint.done !== undefined && session.tree.nodes.length > 0) return endpoint.done;
  const isLate = thrown instanceof RolloutError && thrown.code === "agent/timeout";
  if (isLate && isSampling) return "deadline";
  if (thrown !== undefined) throw thrown;
  if (session.tree.nodes.length > 0) return "finished";
  const message = `Cannot use what the agent did in task ${task.id}: it never requested a turn of the policy`;
  throw new RolloutError("agent/silent", message);
}

async function openUser({ assignment, setup, watch }: Attempt): Promise<UserSession> {
  const { task, seed } = assignment;
  const { limits, user } = setup;
  return await openSession(watch, { user, task, seed, timeoutMs: limits.userTimeoutMs });
}

async function openWorld(play: Attempt, user: UserSession): Promise<World> {
  return await openForeignWorld(worldTermsOf(play), user, {
    dispose: async (opened) => await dispose(play, opened),
  });
}

/** Disposes of a world. A failure is reported and otherwise ignored. */
async function dispose(play: Attempt, world: World): Promise<void> {
  try {
    await disposeForeignWorld(worldTermsOf(play), world);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    play.setup.onTrouble?.(error);
  }
}

/** Returns the user's usage, or no spending if the user cannot report it. */
async function usageOf(play: Attempt, user: UserSession | undefined): Promise<UserUsage> {
  if (user === undefined) return noSpending;
  try {
    return await askUsage(play, user);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    play.setup.onTrouble?.(error);
    return noSpending;
  }
}

/**
 * A call to code of a party: the responsible party, the action, the timeout in milliseconds, and a suspect for the
 * error message.
 */
type Crossing = readonly [party: Party, does: string, timeoutMs: number, suspect?: string];

async function cross<Result>(
  play: Attempt,
  crossing: Crossing,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  return await crossBoundary(play.watch, boundaryOf(play, crossing), work);
}

/** Makes a call to the world, which may wait for a message of the user. */
async function crossToWorld<Result>(
  play: Attempt,
  crossing: Crossing,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  const boundary = {
    ...boundaryOf(play, crossing),
    waitsFor: play.userCalls.watchCall(play.watch),
  };
  return await crossBoundary(play.watch, boundary, work);
}

function boundaryOf(
  { assignment }: Attempt,
  [party, does, timeoutMs, suspect]: Crossing,
): Boundary {
  const what = `${does} task ${assignment.task.id}`;
  return { party, what, timeoutMs, ...(suspect !== undefined && { suspect }) };
}

function placeOf({ assignment: { task }, setup }: Attempt, what: string): string {
  return `${what} for task ${task.id} of ${setup.environment.name}`;
}
