import { backOffMs } from "../../async/back-off.ts";
import type { Clock } from "../../async/clock.ts";
import { ChatFailure } from "./chat-failure.ts";

/** The number of attempts of a call and the pauses between them. */
export interface ChatRetryOptions {
  /** Number of attempts, including the first. At least 1. */
  readonly maxAttempts: number;
  /** Maximum of the first pause in milliseconds. It doubles with each pause. */
  readonly firstPauseMs: number;
  /** Maximum of every pause in milliseconds, including a pause that the server requests. */
  readonly maxPauseMs: number;
}

/**
 * Repeats a call until it succeeds, fails permanently, or has used its attempts. A pause is random
 * between half its maximum and its maximum, so that simultaneous failures are retried at different
 * times. A pause that the server requests replaces it.
 *
 * @throws ChatFailure of the last attempt, with the number of attempts in its message.
 * @throws the signal's reason if it is aborted.
 */
export async function retryChatCall<Result>(
  attempt: () => Promise<Result>,
  options: ChatRetryOptions & {
    readonly clock: Pick<Clock, "sleep">;
    /** Returns a number in [0, 1). */
    readonly random: () => number;
    readonly signal: AbortSignal;
  },
): Promise<Result> {
  const { maxAttempts, firstPauseMs, maxPauseMs, clock, random, signal } = options;
  for (let attemptCount = 1; ; attemptCount++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ChatFailure)) throw error;
      const ownMs = backOffMs(attemptCount, { firstMs: firstPauseMs, mostMs: maxPauseMs, random });
      const pauseMs = error.retryAfterMs ?? ownMs;
      const isLast = attemptCount >= maxAttempts || pauseMs > maxPauseMs;
      if (!error.retryable || isLast) throw withAttempts(error, attemptCount);
      await clock.sleep(pauseMs, { signal });
    }
  }
}

function withAttempts(failure: ChatFailure, attemptCount: number): ChatFailure {
  if (attemptCount === 1) return failure;
  return new ChatFailure(failure.kind, `${failure.message} (${attemptCount} attempts)`, {
    retryable: failure.retryable,
    retryAfterMs: failure.retryAfterMs,
    cause: failure.cause,
  });
}
