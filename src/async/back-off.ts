/** How long to wait from failure to failure. */
interface BackOff {
  /** Wait after the first failure in milliseconds; it doubles with each further one. */
  readonly firstMs: number;
  /** Longest wait in milliseconds. Default: no bound. */
  readonly mostMs?: number;
}

/** Further doublings make no difference: the wait is longer than any process lives. */
const MOST_DOUBLINGS = 64;

/**
 * The wait after the `failureCount`-th failure (1-based), in milliseconds. It is spread over its upper
 * half by `random`, a number in [0, 1), so that a thousand callers do not come back at the same
 * instant; without `random` it is not spread.
 */
export function backOffMs(
  failureCount: number,
  { firstMs, mostMs = Infinity, random = () => 1 }: BackOff & { readonly random?: () => number },
): number {
  const doublings = Math.min(failureCount - 1, MOST_DOUBLINGS);
  return Math.min(firstMs * 2 ** doublings, mostMs) * (0.5 + 0.5 * random());
}
