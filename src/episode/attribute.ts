import { InvariantError, RolloutError, describeError, type FailureCode } from "../errors.ts";
import { withDeadline } from "../internal/deadline.ts";

/** A boundary to another party: whom to blame, for what, and how long to wait. */
export interface Boundary {
  /** Code of whatever is thrown without one of its own. */
  readonly code: FailureCode;
  /** What is being done, such as `step task tau-retail/test/7`. */
  readonly what: string;
  readonly timeoutMs: number;
  /** Code of a wait that took too long. */
  readonly timeoutCode: FailureCode;
  readonly signal: AbortSignal;
}

/**
 * Crosses a boundary: whatever is thrown beyond it leaves as a `RolloutError` that names the party.
 * Failures that are attributed already, our own bugs and the caller's abort pass untouched.
 */
export async function attribute<T>(
  boundary: Boundary,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { code, what, timeoutMs, timeoutCode, signal } = boundary;
  try {
    return await withDeadline(work, {
      ms: timeoutMs,
      signal,
      onLate: () => {
        throw new RolloutError(timeoutCode, `Cannot ${what}: no answer within ${timeoutMs} ms`, {
          retryable: true,
        });
      },
    });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof RolloutError || error instanceof InvariantError) throw error;
    throw new RolloutError(code, `Cannot ${what}: ${describeError(error)}`, { cause: error });
  }
}
