import { RolloutError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import type { Deadline } from "../async/deadline.ts";
import type { Message, ToolDefinition } from "../message.ts";
import type { StopReason } from "../trajectory/sample.ts";
import type { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { crossBoundary, crossBriefly, type Boundary } from "./boundary.ts";
import type { CallWatch } from "./turn/call-watch.ts";
import { traced, type EpisodeTrace } from "./episode-tracer.ts";
import type { SharedCounts, TurnRecord } from "./episode.ts";
import type { UserCallTracker } from "./turn/user-call-tracker.ts";
import type { InputPlayer } from "./inputs/input-player.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";

/** What grows while an episode is played. */
export interface Play {
  readonly assignment: EpisodeAssignment;
  readonly setup: EpisodeSetup;
  /** Over the calls to code that is not ours. Where the caller aborts, there is no episode. */
  readonly watch: CallWatch;
  readonly clock: Clock;
  /** Where its inputs come from, and where they are recorded. */
  readonly player: InputPlayer;
  /** Of the user's lines, for which the world asks. */
  readonly hearing: UserCallTracker;
  /** Aborted, the policy is asked for nothing more. */
  readonly interrupt: AbortSignal | undefined;
  /** The turn with which a fork begins. */
  readonly forkAt: number | undefined;
  /** The episode's; its signal aborts with `interrupt` as well. */
  readonly time: Deadline;
  readonly trace: EpisodeTrace | undefined;
  readonly recorder: TrajectoryRecorder;
  readonly messages: Message[];
  readonly turns: TurnRecord[];
  /** What the world lets the agent call. */
  tools: readonly ToolDefinition[];
  /** What the chat template prints of them. */
  shownTools: readonly ToolDefinition[];
  /** Whether the prompt that comes next ends inside an opened reasoning block. */
  reasoningOpened: boolean;
  formatErrorCount: number;
  /** What a fork shares, from where it parts on. */
  shared: SharedCounts | undefined;
}

/** Why the turns ended without a failure. */
export interface TurnsEnd {
  readonly outcome: "completed" | "truncated" | "aborted";
  readonly stopReason: StopReason;
}

/** Whether the episode may no longer ask the policy for anything. */
export function isTimeOver({ time, player }: Play): boolean {
  return player.isLate(() => time.expired || time.leftMs() <= 0);
}

/** The failure of an engine that wrote into the list of ids that it was sent. */
export function overwritten({ assignment, setup }: Play): RolloutError {
  return new RolloutError(
    "engine/bad-reply",
    `Cannot use the ids of ${assignment.rolloutId}: the engine ${setup.engine.kind} wrote into the ` +
      "list of ids that it was sent, expected it to leave that as it is",
  );
}

/** Calls code that is not ours on behalf of the episode (see `crossBoundary()`). */
export function callParty<Result>(
  { watch }: Play,
  boundary: Boundary,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  return crossBoundary(watch, boundary, work);
}

/** Calls the world: a wait without an end is the user's where it waits for a line of theirs. */
export function callWorld<Result>(
  play: Play,
  boundary: Omit<Boundary, "waitsFor">,
  work: (signal: AbortSignal) => Result | Promise<Result>,
): Promise<Result> {
  // In this order: a copy that is given one more member costs ten times as much on Node 20.
  return callParty(play, { waitsFor: play.hearing.listen(play.watch), ...boundary }, work);
}

/**
 * Calls the world on behalf of the episode, or takes from the recording what it answered.
 *
 * @param name - Names the call among those of the episode, such as `step get_order`.
 */
export function askWorld<Result>(
  play: Play,
  boundary: Omit<Boundary, "waitsFor">,
  work: (signal: AbortSignal) => Result | Promise<Result>,
  name: string,
): Promise<Result> {
  const call = (): Promise<Result> =>
    traced(play.trace, name, () => callWorld(play, boundary, work));
  return play.player.answer(name, call, repeatability(play, boundary.timeoutMs));
}

/** What playing the world's answers again takes (see `Environment.repeatable`). */
export function repeatability(
  { setup }: Play,
  limitMs: number,
): { repeatable: boolean; bound: string; limitMs: number } {
  const { name, repeatable = false } = setup.environment;
  return { repeatable, bound: `the worlds of ${name} are not repeatable`, limitMs };
}

/**
 * Calls a method of the agent's. Whatever it throws is its own author's mistake. What it gives at once is
 * given at once.
 *
 * @throws RolloutError `agent/exception` or `agent/timeout`.
 */
export function callAgent<Result>(
  play: Play,
  what: string,
  work: () => Result | Promise<Result>,
): Result | Promise<Result> {
  return crossBriefly(play.watch, () => agentsBoundary(play, what), work);
}

function agentsBoundary({ assignment, setup }: Play, what: string): Boundary {
  const { agent, limits } = setup;
  return {
    party: "agent",
    what: `${what} in task ${assignment.task.id} as agent ${agent.strategy}`,
    timeoutMs: limits.toolTimeoutMs,
  };
}

/** Tells of a failure that does not end the episode. */
export async function tolerate(play: Play, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    play.setup.onTrouble?.(error);
  }
}
