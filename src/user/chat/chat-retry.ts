import { backOffMs } from "../../async/back-off.ts";
import type { Clock } from "../../async/clock.ts";
import { ChatFailure } from "./chat-failure.ts";

/** How often and how patiently a failed call is made again. */
export interface ChatRetryOptions {
  /** Attempts in all, the first included; at least 1. */
  readonly maxAttempts: number;
  /** Upper bound of the first pause in milliseconds; it doubles from pause to pause. */
  readonly firstPauseMs: number;
  /** Upper bound of any pause, also of one that the server asks for. */
  readonly maxPauseMs: number;
}

/**
 * Makes a call until it succeeds, fails for good, or has had its attempts. A pause is drawn between
 * half its bound and its bound, so that calls that failed together do not come back together; where
 * the server says how long to wait, that is the pause.
 *
 * @throws ChatFailure the last one, its message naming the number of attempts.
 * @throws the signal's reason where the signal is aborted.
 */
export async function retryChatCall<Result>(
  attempt: () => Promise<Result>,
  options: ChatRetryOptions & {
    readonly clock: Pick<Clock, "sleep">;
    /** In [0, 1). */
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
