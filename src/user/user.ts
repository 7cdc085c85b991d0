import type { Outside } from "../outside.ts";
import type { Task } from "../task.ts";

/** A line of a user. JSON-able. */
export type UserLine = string | LeavingLine;

/** The last line of a user, who receives no answer to it. */
export interface LeavingLine {
  /** May be empty. */
  readonly text: string;
  readonly leaves: true;
}

/** Returns the text of a line. */
export function textOfLine(line: UserLine): string {
  return typeof line === "string" ? line : line.text;
}

/** True if the user leaves with the line, independent of its text. */
export function isLeaving(line: UserLine): line is LeavingLine {
  return typeof line !== "string" && line.leaves;
}

/** The spending of a user. JSON-able. */
export interface UserSpending {
  /** Number of calls of the user's model and its judge. */
  readonly callCount: number;
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** The cost in US dollars. Absent if no price is known. */
  readonly costUsd?: number;
}

/** The spending of a user and the result of a quality gate. JSON-able. */
export interface UserUsage extends UserSpending {
  /** The counts of the quality gate. Absent if no gate checks the lines. */
  readonly quality?: UserQuality;
}

/** The counts of a quality gate for one conversation. JSON-able. */
export interface UserQuality {
  /** Number of lines by problem. Problems that never occurred are absent. */
  readonly problems: Readonly<Record<string, number>>;
  /** Number of lines that were sampled again. */
  readonly retakeCount: number;
}

/** The party that the agent talks to: a model, a script, or a person. `Data` is the data of its tasks. */
export interface User<Data = unknown> {
  /** The strategy's name, such as `llm` or `scripted`. */
  readonly strategy: string;
  /**
   * True if equal tasks, seeds, agent messages and results of `outside` always lead to equal lines.
   * Otherwise the lines themselves are recorded for playback, and an episode that a crash
   * interrupted starts again. Default false.
   */
  readonly repeatable?: boolean;
  /** Opens a conversation about a task. Makes no network call. */
  open(
    task: Task<Data>,
    options: {
      readonly seed: number;
      /**
       * Runs and records the parts that cannot be repeated, such as a model's replies. Default
       * `callThrough`.
       */
      readonly outside?: Outside;
    },
  ): UserSession;
  /**
   * Closes the user's connections. Absent if it has none. The caller closes a model that it passed
   * in.
   */
  close?(): Promise<void>;
}

/** One conversation with a user. */
export interface UserSession {
  /**
   * Returns the user's first line, with which the user cannot leave. An invalid line fails the
   * episode (`user/bad-line`).
   *
   * @throws RolloutError with party `user`: `user/timeout`, `user/unreachable`, `user/empty-reply`,
   *   …
   */
  begin(options: { signal: AbortSignal }): Promise<string>;
  /** Returns the user's answer to the agent's message. Throws as `begin()` does. */
  reply(agentText: string, options: { signal: AbortSignal }): Promise<UserLine>;
  /**
   * Replaces the last line by another. Absent if the user cannot. Throws as `begin()` does; the
   * last line then stays valid.
   */
  retake?(options: { signal: AbortSignal }): Promise<UserLine>;
  usage(): UserUsage;
}
