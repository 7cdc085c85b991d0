/** The wait between failures. */
interface BackOff {
  /** Wait after the first failure in milliseconds; it doubles with each further failure. */
  readonly firstMs: number;
  /** Longest wait in milliseconds. Default: no limit. */
  readonly mostMs?: number;
}

/** Further doublings make no difference: the wait already exceeds any process's life. */
const MOST_DOUBLINGS = 64;

/**
 * Returns the wait after the `failureCount`-th failure (1-based), in milliseconds. `random`, a number in [0, 1),
 * spreads it over its upper half, so that a thousand callers do not retry at the same instant. Without `random` it
 * is not spread.
 */
export function backOffMs(
  failureCount: number,
  { firstMs, mostMs = Infinity, random = () => 1 }: BackOff & { readonly random?: () => number },
): number {
  const doublings = Math.min(failureCount - 1, MOST_DOUBLINGS);
  return Math.min(firstMs * 2 ** doublings, mostMs) * (0.5 + 0.5 * random());
}
