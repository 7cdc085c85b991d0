import { expect, test } from "vitest";
import { readRetryAfterMs, retryDelayMs } from "./http-retry.ts";

const policy = { maxAttempts: 8, baseDelayMs: 100, maxDelayMs: 1_000 };

test("`retryDelayMs()` respects Retry-After up to the maximum delay", () => {
  const delay = (retryAfterMs: number): number =>
    retryDelayMs({ failureCount: 1, policy, random: () => 0, retryAfterMs });
  expect([delay(10), delay(700), delay(5_000)]).toEqual([50, 700, 1_000]);
});

test("`readRetryAfterMs()` reads only integral seconds", () => {
  expect(readRetryAfterMs({ "retry-after": "7" })).toBe(7_000);
  expect(readRetryAfterMs({ "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" })).toBeUndefined();
  expect(readRetryAfterMs({})).toBeUndefined();
});
