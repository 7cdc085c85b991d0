import type { Outside } from "../outside.ts";
import type { Task } from "../task.ts";

/** What a user says: a line, or the line with which they leave. JSON-able. */
export type UserLine = string | LeavingLine;

/** The last line of a user, who hears nothing after it. */
export interface LeavingLine {
  /** May be empty: some leave without a word. */
  readonly text: string;
  readonly leaves: true;
}

/** The words of a line. */
export function textOfLine(line: UserLine): string {
  return typeof line === "string" ? line : line.text;
}

/** Whether the user leaves with the line. What it says in words plays no part. */
export function isLeaving(line: UserLine): line is LeavingLine {
  return typeof line !== "string" && line.leaves;
}

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
  /**
   * Whether a conversation that is given the same task, seed, words and answers of `outside` says the
   * same lines. Where it is not so, or not said, its lines themselves are recorded: its episodes can be
   * played again, and an episode that a crash cut off begins anew. Default false.
   */
  readonly repeatable?: boolean;
  /** Opens a conversation about a task. Makes no network call. */
  open(
    task: Task,
    options: {
      readonly seed: number;
      /** For what the user cannot repeat by itself, such as a model's replies. Default `callThrough`. */
      readonly outside?: Outside;
    },
  ): UserSession;
  /**
   * Drops the connections that it keeps, once nobody talks to it any more; absent where it keeps none.
   * A model that was given ready-made is closed by whoever made it.
   */
  close?(): Promise<void>;
}

/** One conversation with a user, from their side. */
export interface UserSession {
  /**
   * The user's first line; nobody leaves with it. What is no line fails the episode (`user/bad-line`).
   *
   * @throws RolloutError with party `user`: `user/timeout`, `user/unreachable`, `user/empty-reply`, …
   */
  begin(options: { signal: AbortSignal }): Promise<string>;
  /** The user's answer to what the agent said. Throws as `begin()` does. */
  reply(agentText: string, options: { signal: AbortSignal }): Promise<UserLine>;
  /**
   * Takes the last line back and says another in its place; absent where the user cannot. Throws as
   * `begin()` does; the last line then still stands.
   */
  retake?(options: { signal: AbortSignal }): Promise<UserLine>;
  usage(): UserUsage;
}
