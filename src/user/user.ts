import type { Task } from "../task.ts";

/**
 * What a simulated user says when nothing is left to say. An environment ends the episode where a
 * user's line contains it, in exactly this spelling. **Source:** sierra-research/tau-bench,
 * tau_bench/envs/base.py.
 */
export const STOP_MARKER = "###STOP###";

/** What talking to a user has cost so far. JSON-able. */
export interface UserUsage {
  readonly callCount: number;
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** Absent where no price is known. */
  readonly costUsd?: number;
}

/** Who the agent talks to: a model, a script, or a person. */
export interface User {
  /** Such as `llm` or `scripted`. */
  readonly strategy: string;
  /** Opens a conversation about a task. Makes no network call. */
  open(task: Task, options: { seed: number }): UserSession;
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
  usage(): UserUsage;
}
