import { backOffMs } from "../../async/back-off.ts";

/** When and how often a request is made again. */
export interface RetryPolicy {
  /** Requests for one stretch of sampling, the first one included. At least 1. */
  readonly maxAttempts: number;
  /** Wait after the first failure, in milliseconds; it doubles with each further one. */
  readonly baseDelayMs: number;
  /** Longest wait, in milliseconds. */
  readonly maxDelayMs: number;
}

/**
 * The wait after the `failureCount`-th failure (1-based), in milliseconds, as `backOffMs()` has it. A
 * server's own wish (`retryAfterMs`) is a lower bound, still capped by `maxDelayMs`.
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

/** A `Retry-After` header in whole seconds as milliseconds; `undefined` for anything else. */
export function readRetryAfterMs(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): number | undefined {
  const value = headers["retry-after"];
  return typeof value === "string" && /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : undefined;
}
