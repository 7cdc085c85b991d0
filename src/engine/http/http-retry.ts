import { backOffMs } from "../../async/back-off.ts";

/** The number of attempts of a request and the waits between them. */
export interface RetryPolicy {
  /** Maximum number of attempts of one request, including the first. At least 1. */
  readonly maxAttempts: number;
  /** Wait after the first failure, in milliseconds. Doubles with each further failure. */
  readonly baseDelayMs: number;
  /** Maximum wait, in milliseconds. */
  readonly maxDelayMs: number;
}

/**
 * Returns the wait after the `failureCount`-th failure (1-based), in milliseconds, from
 * `backOffMs()`. The server's `Retry-After` (`retryAfterMs`) is a lower bound. `maxDelayMs` caps
 * both.
 */
export function retryDelayMs({
  failureCount,
  policy,
  random,
  retryAfterMs = 0,
}: {
  failureCount: number;
  policy: RetryPolicy;
  random: () => number;
  retryAfterMs?: number;
}): number {
  const { baseDelayMs: firstMs, maxDelayMs: mostMs } = policy;
  const ownMs = backOffMs(failureCount, { firstMs, mostMs, random });
  return Math.min(Math.max(ownMs, retryAfterMs), mostMs);
}

/**
 * Converts a `Retry-After` header in seconds to milliseconds. Returns `undefined` for any other
 * value.
 */
export function readRetryAfterMs(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): number | undefined {
  const value = headers["retry-after"];
  return typeof value === "string" && /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : undefined;
}
