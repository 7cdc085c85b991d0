import type { Task } from "../task.ts";

/**
 * What a simulated user says when nothing is left to say. An environment ends the episode where a
 * user's line contains it, in exactly this spelling. **Source:** sierra-research/tau-bench,
 * tau_bench/envs/base.py.
 */
export const STOP_MARKER = "###STOP###";

/** What talking to users has cost. JSON-able. */
export interface UserSpending {
  /** Calls of the user's model, those of its judge included. */
  readonly callCount: number;
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** In US dollars; absent where no price is known. */
  readonly costUsd?: number;
}

/** What talking to a user has cost so far. JSON-able. */
export interface UserUsage extends UserSpending {
  /** What a quality gate noticed; absent where none watches. */
  readonly quality?: UserQuality;
}

/** How often a quality gate noticed what, over the lines of one conversation. JSON-able. */
export interface UserQuality {
  /** Lines that looked wrong, by the problem's name; a problem that never occurred is absent. */
  readonly problems: Readonly<Record<string, number>>;
  /** Lines that were sampled again because of it. */
  readonly retakeCount: number;
}

/** Who the agent talks to: a model, a script, or a person. */
export interface User {
  /** Such as `llm` or `scripted`. */
  readonly strategy: string;
  /** Opens a conversation about a task. Makes no network call. */
  open(task: Task, options: { seed: number }): UserSession;
  /** Closes kept connections; absent where there are none. The user takes no tasks afterwards. */
  close?(): Promise<void>;
}

/** One conversation with a user, from their side. */
export interface UserSession {
  /**
   * The user's first line.
   *
   * @throws RolloutError with party `user`: `user/timeout`, `user/unreachable`, `user/empty-reply`, …
   */
  begin(options: { signal: AbortSignal }): Promise<string>;
  /** The user's answer to what the agent said. Throws as `begin()` does. */
  reply(agentText: string, options: { signal: AbortSignal }): Promise<string>;
  /**
   * Takes the last line back and says another in its place; absent where the user cannot. Throws as
   * `begin()` does; the last line then still stands.
   */
  retake?(options: { signal: AbortSignal }): Promise<string>;
  usage(): UserUsage;
}
