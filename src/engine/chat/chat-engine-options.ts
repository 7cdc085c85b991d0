import type { Clock } from "../../async/clock.ts";
import type { ChatAddress } from "./chat-connection.ts";
import type { ChatRetryOptions } from "./chat-retry.ts";
import type { OtherMembers } from "./chat-turn.ts";

/** Settings of a chat engine. */
export interface ChatEngineOptions extends ChatAddress {
  /** The server's name for the model. */
  readonly model: string;
  /** Further members of each request, such as `reasoning_effort`. `null` leaves out a member that is sent otherwise. */
  readonly body?: OtherMembers;
  /**
   * Members of the server's messages that return to it in later turns, such as `reasoning_content`. Text, calls and
   * other members of calls always return. Default: none.
   */
  readonly returnedMembers?: readonly string[];
  /** Time limit of a turn with all attempts and pauses, in milliseconds. Default 20 minutes. */
  readonly turnMs?: number;
  /**
   * The number of attempts and the pauses between them. Default: 8 attempts with pauses of up to 1, 2, 4 … 60 seconds,
   * or as long as the server requests.
   */
  readonly retry?: Partial<ChatRetryOptions>;
  /** Environment variables, which hold API keys. Default: the process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The clock of pauses and time limits. Default: the machine's timers. */
  readonly clock?: Clock;
  /** Returns a number in [0, 1) that spreads retries. Default `Math.random`. */
  readonly random?: () => number;
}

/** Defaults of `ChatEngineOptions.retry`. Rate limits are usually counted by the minute. */
export const chatRetryDefaults: ChatRetryOptions = {
  maxAttempts: 8,
  firstPauseMs: 1000,
  maxPauseMs: 60_000,
};

/** Default of `ChatEngineOptions.turnMs`. */
export const defaultTurnMs = 20 * 60_000;
