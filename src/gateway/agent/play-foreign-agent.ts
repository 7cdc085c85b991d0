import type { Step, World } from "../../environment/environment.ts";
import { askUsage } from "../../episode/turn/ask-usage.ts";
import { crossBoundary, suspectOf, type Boundary } from "../../episode/boundary.ts";
import { CallWatch } from "../../episode/turn/call-watch.ts";
import {
  checkOpening,
  checkScore,
  checkSession,
  checkWorld,
} from "../../episode/check/check-foreign.ts";
import { UserCallTracker } from "../../episode/turn/user-call-tracker.ts";
import { noRedactor } from "../../episode/inputs/open-inputs.ts";
import { termsOf } from "../../episode/open-world.ts";
import { scoredEnd } from "../../episode/scored-end.ts";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import { RolloutError, type Party } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { startDeadline } from "../../async/deadline.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { RolloutEnd, StopReason } from "../../trajectory/sample.ts";
import { noSpending } from "../../user/chat/add-spending.ts";
import type { UserSession, UserUsage } from "../../user/user.ts";
import type { GatewaySession } from "../session/session.ts";
import type { ForeignAgent, ForeignRun } from "./foreign-agent.ts";
import { WorldDesk } from "./world-desk.ts";

/** What an agent finds in the place of an inference server. */
export type AgentPlace = Pick<ForeignRun, "baseUrl" | "apiKey" | "fetch">;

/** What an agent is let into its attempt with. */
interface AgentOpening {
  readonly place: AgentPlace;
  readonly useDesk: (desk: WorldDesk) => void;
  /** Takes what is to be told when a policy call of the agent's is held by the policy's owner. */
  readonly useHold: (onHeld: (isHeld: boolean) => void) => void;
}

/** How one attempt came out, before its rows are collected. */
export interface PlayedAttempt {
  readonly end: RolloutEnd & Pick<Episode, "rewardDetails">;
  /** Absent where it was interrupted. */
  readonly userUsage?: UserUsage;
}

/** One attempt while it is played. */
interface Attempt {
  readonly assignment: EpisodeAssignment;
  readonly setup: EpisodeSetup;
  readonly session: GatewaySession;
  readonly watch: CallWatch;
  /** Of the user's lines, for which the world asks. */
  readonly hearing: UserCallTracker;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Takes secrets out of what the agent is told. Default: none are known. */
  readonly redactor?: Pick<Redactor, "thrown" | "without"> | undefined;
}

/**
 * Plays one attempt at a task with an agent that was written elsewhere: it hears the user, calls the
 * environment's tools, and asks the gateway for the policy's turns in `session`.
 *
 * - What the agent throws, or its silence until the episode's time is over, is a failure of the party
 *   `agent`, and so is that it never asks the policy anything.
 * - What an engine, a user or an environment does not do is theirs, whatever the agent makes of it.
 * - A limit that the policy meets ends the attempt as `truncated`, as it does for built-in agents.
 *
 * @throws the signal's reason where that is aborted.
 */
export async function playForeignAgent(
  agent: ForeignAgent,
  attempt: Omit<Attempt, "watch" | "hearing" | "clock">,
  open: AgentOpening,
): Promise<PlayedAttempt> {
  const { setup, signal } = attempt;
  const { clock = systemClock } = setup;
  using watch = new CallWatch(signal, clock);
  const hearing = new UserCallTracker({
    taskId: attempt.assignment.task.id,
    strategy: setup.user.strategy,
    timeoutMs: setup.limits.userTimeoutMs,
  });
  const play: Attempt = { ...attempt, watch, hearing, clock };
  let user: UserSession | undefined;
  let end: PlayedAttempt["end"];
  try {
    user = await openUser(play);
    const world = await openWorld(play, hearing.watched(user));
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
  // The signal of an agent that was late says that its time is over, and the grader's has only begun.
  using watch = new CallWatch(play.signal, play.clock);
  const score = await crossToWorld(
    { ...play, watch },
    ["grader", "score", limits.scoreTimeoutMs, suspectOf(environment, "score")],
    async (signal) => checkScore(await world.score({ signal }), placeOf(play, "world.score()")),
  );
  return isTruncation(done)
    ? scoredEnd({ outcome: "truncated", stopReason: done }, score)
    : scoredEnd({ outcome: "completed", stopReason: done }, score);
}

type Truncation = "max-turns" | "max-tokens" | "context-full" | "deadline";

function isTruncation(reason: StopReason): reason is Truncation {
  return ["max-turns", "max-tokens", "context-full", "deadline"].includes(reason);
}

/** @returns why the agent has done what it could. */
async function runAgent(
  agent: ForeignAgent,
  play: Attempt,
  open: AgentOpening & { readonly world: World },
): Promise<NonNullable<Step["done"]> | Truncation> {
  const { assignment, setup, session, signal, clock, redactor } = play;
  const { place, useDesk, useHold, world } = open;
  const { limits } = setup;
  const { task } = assignment;
  const { hearing } = play;
  // The agent is one call, and what it does in the world are others meanwhile.
  const left = new AbortController();
  using stop = startDeadline({ ms: Infinity, parents: [signal, left.signal] });
  using watch = new CallWatch(stop.signal, clock);
  const beginning = {
    party: "environment",
    what: `begin task ${task.id}`,
    waitsFor: hearing.watchCall(watch),
    timeoutMs: limits.userTimeoutMs,
  } as const;
  const clean = <Value>(value: Value): Value => redactor?.without(value) ?? value;
  const firstUserText = await crossBoundary(watch, beginning, async (ended) =>
    clean(checkOpening(await world.begin({ signal: ended }), placeOf(play, "world.begin()"))),
  );
  const reading = ["environment", "read the terms of", limits.toolTimeoutMs] as const;
  const about = await cross(play, reading, () => {
    const { policyText, tools } = termsOf({ setup, redactor: redactor ?? noRedactor }, world);
    return { task, policyText, firstUserText, tools: [...tools] };
  });
  const { policyText } = about;
  // What is sampled from there on nothing in the world answers to: it would be trained with a reward that it
  // has no part in.
  const onDone = (): void => session.finish(`the world of task ${task.id} is done`);
  const desk = new WorldDesk(about, {
    world,
    watch,
    hearing,
    limits,
    onDone,
    ...(redactor !== undefined && { redactor }),
  });
  const tools = await cross(play, reading, () => desk.tools);
  useDesk(desk);
  let trouble: unknown;
  let isAsking = false;
  let isRunning = true;
  let heldCount = 0;
  // Its own time stands still as long as any of its policy calls is held.
  useHold((isHeld) => {
    heldCount += isHeld ? 1 : -1;
    if (!isRunning) return;
    if (heldCount > 0) play.watch.pause();
    else play.watch.goOn();
  });
  try {
    const running = ["agent", "run the agent in", limits.episodeTimeoutMs] as const;
    await cross(play, running, async (ended) => {
      const note = (): void => void (isAsking = session.activeCount > 0);
      // Before the agent hears of it: it will leave what it waits for.
      ended.addEventListener("abort", note, { once: true });
      const run = { ...place, task, firstUserText, policyText, signal: ended };
      await agent.run({ ...run, tools, say: async (text) => await desk.say(text) });
    });
  } catch (error) {
    play.watch.throwIfAborted();
    trouble = error;
  } finally {
    isRunning = false;
  }
  // What is sampled from here on nobody acts on: it is none of what is scored.
  session.finish("the agent has ended");
  left.abort(new DOMException("the agent has ended", "AbortError"));
  await desk.close();
  if (desk.failure !== undefined) throw desk.failure;
  const { setback } = session;
  // What the policy was not able to do is not the agent's failure, whatever the agent makes of it.
  if (setback?.type === "failure") throw setback.error;
  // Whoever has sampled turns and comes to an end of its own may have shortened or left a conversation.
  const hasFinished = trouble === undefined && session.tree.nodes.length > 0;
  const isLeft = setback?.type === "limit" && setback.stopReason === "context-full" && hasFinished;
  if (setback?.type === "limit" && !isLeft) return setback.stopReason;
  // The world was done first: whatever the agent makes of that, it has come to its end.
  if (desk.done !== undefined && session.tree.nodes.length > 0) return desk.done;
  const isLate = trouble instanceof RolloutError && trouble.code === "agent/timeout";
  if (isLate && isAsking) return "deadline";
  if (trouble !== undefined) throw trouble;
  if (session.tree.nodes.length > 0) return "finished";
  const message = `Cannot use what the agent did in task ${task.id}: it never asked the policy for a turn`;
  throw new RolloutError("agent/silent", message);
}

async function openUser(play: Attempt): Promise<UserSession> {
  const { assignment, setup } = play;
  const { task, seed } = assignment;
  const { strategy } = setup.user;
  const { userTimeoutMs } = setup.limits;
  const opening = [
    "user",
    `open a conversation with user ${strategy} about`,
    userTimeoutMs,
  ] as const;
  const opened = await cross(play, opening, () => setup.user.open(task, { seed }));
  const place = placeOf(play, `user.open() of ${strategy}`);
  return await cross(play, opening, () => checkSession(opened, place));
}

async function openWorld(play: Attempt, user: UserSession): Promise<World> {
  const { assignment, setup } = play;
  const { environment, limits } = setup;
  let isAwaited = true;
  let world: World | undefined;
  try {
    const suspect = suspectOf(environment, "open");
    const opening = ["environment", "open", limits.toolTimeoutMs, suspect] as const;
    return await crossToWorld(play, opening, async (signal) => {
      const opened = await environment.open(assignment.task, { user, signal });
      const checked = checkWorld(opened, placeOf(play, "environment.open()"));
      // One that comes too late is cleared away.
      if (isAwaited) world = checked;
      else await dispose(play, checked);
      return checked;
    });
  } catch (error) {
    isAwaited = false;
    if (world !== undefined) await dispose(play, world);
    throw error;
  }
}

/** Disposes of a world, whatever became of its episode; a failure is told and passed over. */
async function dispose(
  { assignment, setup, clock, hearing }: Attempt,
  world: World,
): Promise<void> {
  // The caller's abort must not keep the world from being cleared away.
  using watch = new CallWatch(new AbortController().signal, clock);
  const what = `dispose of the world of task ${assignment.task.id}`;
  const suspect = suspectOf(setup.environment, "dispose");
  const timeoutMs = setup.limits.toolTimeoutMs;
  const waitsFor = hearing.watchCall(watch);
  const boundary = { party: "environment", what, suspect, waitsFor, timeoutMs } as const;
  try {
    await crossBoundary(
      watch,
      boundary,
      async (signal) => await world[Symbol.asyncDispose]({ signal }),
    );
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    setup.onTrouble?.(error);
  }
}

/** What the user cost. A user who cannot say costs nothing that is known of. */
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

/** What a call is: whose, what is done, how long it may take in milliseconds, and what to look at. */
type Crossing = readonly [party: Party, does: string, timeoutMs: number, suspect?: string];

async function cross<Result>(
  play: Attempt,
  crossing: Crossing,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  return await crossBoundary(play.watch, boundaryOf(play, crossing), work);
}

/** The same for a call to the world, which may wait for a line of the user's. */
async function crossToWorld<Result>(
  play: Attempt,
  crossing: Crossing,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  const boundary = { ...boundaryOf(play, crossing), waitsFor: play.hearing.watchCall(play.watch) };
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
