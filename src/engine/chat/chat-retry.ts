import { backOffMs } from "../../async/back-off.ts";
import type { Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { ChatFailure } from "./chat-failure.ts";

/** The number of attempts of a call and the pauses between them. */
export interface ChatRetryOptions {
  /** Number of attempts, including the first. At least 1. */
  readonly maxAttempts: number;
  /** Maximum of the first pause in milliseconds. The maximum doubles with each pause. */
  readonly firstPauseMs: number;
  /** Maximum of every pause in milliseconds, including a pause that the server requests. */
  readonly maxPauseMs: number;
}

interface RetryTerms extends ChatRetryOptions {
  readonly clock: Pick<Clock, "sleep" | "after" | "now">;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/**
 * Repeats a call until it succeeds, fails permanently, has used its attempts, or its time is over. A pause is random
 * between half its maximum and its maximum, so that simultaneous failures are retried at different times. If the server
 * requests a pause, that pause is used instead. The wait ends at the deadline even if an attempt ignores its signal.
 *
 * @param options - `timeoutMs` is the time for all attempts with their pauses.
 * @throws ChatFailure of the last attempt, with the number of attempts in its message, or `timeout`, whose message has
 *   the failure of the last attempt that ended.
 * @throws the signal's reason if it is aborted.
 */
export async function retryChatCall<Result>(
  attempt: (signal: AbortSignal) => Promise<Result>,
  options: RetryTerms & { readonly timeoutMs: number },
): Promise<Result> {
  const { timeoutMs: ms, signal, clock } = options;
  const failures: ChatFailure[] = [];
  return await withDeadline(
    (inner) => repeat(() => attempt(inner), failures, { ...options, signal: inner }),
    { ms, signal, clock, onLate: () => throwLate(ms, failures) },
  );
}

async function repeat<Result>(
  attempt: () => Promise<Result>,
  failures: ChatFailure[],
  { maxAttempts, firstPauseMs, maxPauseMs, clock, random, signal }: RetryTerms,
): Promise<Result> {
  for (let attemptCount = 1; ; attemptCount++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ChatFailure)) throw error;
      failures.push(error);
      const ownMs = backOffMs(attemptCount, { firstMs: firstPauseMs, mostMs: maxPauseMs, random });
      const pauseMs = error.retryAfterMs ?? ownMs;
      const isLast = attemptCount >= maxAttempts || pauseMs > maxPauseMs;
      if (!error.retryable || isLast) throw withAttempts(error, attemptCount);
      await clock.sleep(pauseMs, { signal });
    }
  }
}

function throwLate(ms: number, failures: readonly ChatFailure[]): never {
  const last = failures.at(-1);
  const message =
    last === undefined
      ? `no reply within ${ms} ms`
      : `no usable reply within ${ms} ms; attempt ${failures.length} failed: ${last.message}`;
  throw new ChatFailure("timeout", message, { retryable: true, cause: last?.cause });
}

function withAttempts(failure: ChatFailure, attemptCount: number): ChatFailure {
  if (attemptCount === 1) return failure;
  return new ChatFailure(failure.kind, `${failure.message} (${attemptCount} attempts)`, {
    retryable: failure.retryable,
    retryAfterMs: failure.retryAfterMs,
    cause: failure.cause,
  });
}
