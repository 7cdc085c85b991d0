import { RolloutError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import type { Deadline } from "../async/deadline.ts";
import type { Message, ToolDefinition } from "../message.ts";
import type { StopReason } from "../trajectory/sample.ts";
import type { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { crossBoundary, crossBriefly, type Boundary } from "./boundary.ts";
import type { ChatConversation } from "./chat/chat-conversation.ts";
import type { CallWatch } from "./turn/call-watch.ts";
import { traced, type EpisodeTrace } from "./episode-tracer.ts";
import type { SharedCounts, TurnRecord } from "./episode.ts";
import type { UserCallTracker } from "./turn/user-call-tracker.ts";
import type { AnswerTerms } from "./inputs/input-source.ts";
import type { EpisodeInputs } from "./inputs/open-inputs.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";

/** The state of an episode while it is played. */
export interface Play extends EpisodeInputs {
  readonly assignment: EpisodeAssignment;
  readonly setup: EpisodeSetup;
  /** Time limits of calls to foreign code. If the caller aborts, the play throws and returns no episode. */
  readonly watch: CallWatch;
  readonly clock: Clock;
  /** The user's lines that the world requests. */
  readonly userCalls: UserCallTracker;
  /** Once aborted, the policy gets no more requests. */
  readonly interrupt: AbortSignal | undefined;
  /** Index of the turn with which a fork starts. */
  readonly forkAt: number | undefined;
  /** The episode's deadline. Its signal also aborts with `interrupt`. */
  readonly time: Deadline;
  readonly trace: EpisodeTrace | undefined;
  readonly recorder: TrajectoryRecorder;
  /** The conversation with an engine that returns messages. `undefined` if the engine returns ids. */
  readonly chat: ChatConversation | undefined;
  readonly messages: Message[];
  readonly turns: TurnRecord[];
  /** The tools that the world offers. */
  tools: readonly ToolDefinition[];
  /** The tools that the chat template prints. */
  shownTools: readonly ToolDefinition[];
  /** True if the next prompt ends inside a reasoning block. */
  reasoningOpened: boolean;
  formatErrorCount: number;
  /** Counts of the turns that a fork shares. `undefined` before the fork's first own turn. */
  shared: SharedCounts | undefined;
}

/** The reason why the turns ended without a failure. */
export interface TurnsEnd {
  readonly outcome: "completed" | "truncated" | "aborted";
  readonly stopReason: StopReason;
}

/** Returns true if the episode's time is over, so that the policy gets no more requests. */
export function isTimeOver({ time, inputs }: Play): boolean {
  return inputs.isLate(() => time.expired || time.leftMs() <= 0);
}

/** Returns the failure of an engine that changed the list of prompt ids. */
export function overwritten({ assignment, setup }: Play): RolloutError {
  return new RolloutError(
    "engine/bad-reply",
    `Cannot use the ids of ${assignment.rolloutId}: the engine ${setup.engine.kind} wrote into the ` +
      "list of ids that it was sent, expected it to leave that as it is",
  );
}

/**
 * Returns the world's answer to a call: live, or from the recording. If a live call waits for the user when its time
 * limit ends, the user is responsible.
 *
 * @param name - The call's name in the recording and in traces, such as `step get_order`.
 */
export function askWorld<Result>(
  play: Play,
  boundary: Omit<Boundary, "waitsFor">,
  work: (signal: AbortSignal) => Result | Promise<Result>,
  name: string,
): Promise<Result> {
  const { trace, userCalls, watch } = play;
  // In this order: a spread followed by one more member costs ten times as much on Node 20.
  const call = (): Promise<Result> =>
    crossBoundary(watch, { waitsFor: userCalls.watchCall(watch), ...boundary }, work);
  const tracedCall = trace === undefined ? call : () => traced(trace, name, call);
  return play.inputs.answer(name, tracedCall, answerTerms(play, boundary.timeoutMs));
}

/** Returns the properties of the world's answers that decide how they are recorded (see `Environment.repeatable`). */
export function answerTerms({ setup }: Play, limitMs: number): AnswerTerms {
  const { name, repeatable = false } = setup.environment;
  return { repeatable, bound: `the worlds of ${name} are not repeatable`, limitMs };
}

/**
 * Calls one of the agent's methods. Returns immediately if the method does.
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

/** Reports a failure that does not end the episode, and continues. */
export async function tolerate(play: Play, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    play.setup.onTrouble?.(error);
  }
}
