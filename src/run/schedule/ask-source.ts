import { RolloutError, UsageError, describeError, isOwnBug } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { sourcedFault } from "./sourced-fault.ts";
import type { SourcedTask, TaskSource } from "./task-source.ts";

/** The time after the stop of a run in which a source may still give a task, in milliseconds. */
const lastDrawMs = 5_000;

/** Options for asking a source. */
export interface AskOptions {
  /** Aborts when no further group is started. */
  readonly signal: AbortSignal;
  /** The clock of the time limit. Default: the machine's clock. */
  readonly clock?: Pick<Clock, "after">;
}

/**
 * Requests a group from a caller's source. After the run has stopped, the source has five more seconds, so that a task
 * which it is returning at that moment is recorded. Then `givenUp` aborts, and the answer is ignored. An answer of
 * `undefined` after the stop does not mean that the source has ended: the next start requests the group again.
 *
 * @throws the signal's reason if it aborts first, for any later error of the source, and if the source returns no task.
 * @throws UsageError if the source fails, or returns a task that cannot be played.
 */
export async function askSource(
  source: TaskSource,
  groupIndex: number,
  { signal, clock = systemClock }: AskOptions,
): Promise<SourcedTask | undefined> {
  signal.throwIfAborted();
  const left = new AbortController();
  let callOff = (): void => {};
  const onClose = (): void => {
    callOff = clock.after(lastDrawMs, () => left.abort(signal.reason));
  };
  signal.addEventListener("abort", onClose, { once: true });
  try {
    const given = { signal, givenUp: left.signal };
    const sourced = await withDeadline(async () => await source.at(groupIndex, given), {
      ms: Infinity,
      signal: left.signal,
      onLate: () => undefined,
    });
    if (sourced === undefined) signal.throwIfAborted();
    const fault = sourced === undefined ? undefined : sourcedFault(sourced);
    if (fault === undefined) return sourced;
    throw new UsageError(`Cannot take task ${groupIndex} from the source of tasks: ${fault}`);
  } catch (cause) {
    if (!isOwnBug(cause)) signal.throwIfAborted();
    throw sourceFailure(groupIndex, cause);
  } finally {
    signal.removeEventListener("abort", onClose);
    callOff();
  }
}

/**
 * Requests the task index of a group from the source, without making the task.
 *
 * @throws UsageError if the source fails.
 */
export function askTaskIndex(source: TaskSource, groupIndex: number): number | undefined {
  try {
    return source.taskIndexAt?.(groupIndex);
  } catch (cause) {
    throw sourceFailure(groupIndex, cause);
  }
}

function sourceFailure(groupIndex: number, cause: unknown): unknown {
  if (cause instanceof UsageError || cause instanceof RolloutError || isOwnBug(cause)) return cause;
  return new UsageError(
    `Cannot take task ${groupIndex} from the source of tasks: ${describeError(cause)}`,
    { cause },
  );
}
