import { RolloutError, UsageError, describeError, isOwnBug } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";
import { sourcedFault } from "./sourced-fault.ts";
import type { SourcedTask, TaskSource } from "./task-source.ts";

/** How long a source may take to give a task that it was asked for before a stop, in milliseconds. */
const lastDrawMs = 5_000;

/** How a source is asked. */
export interface AskOptions {
  /** Aborted when nothing is begun any more. */
  readonly signal: AbortSignal;
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, "after">;
}

/**
 * Asks a source, which may be anyone's, for the group at a place. When nothing is begun any more it is still
 * given a moment, so that a task which it has given away is noted; one that does not heed its signal is not
 * waited for any longer, and told so (`givenUp`). In which way it ends its wait then is no matter: also where it
 * gives nothing, nobody knows whether that is its end, and the next start asks again.
 *
 * @throws the signal's reason where that is aborted first, whatever the source throws then, and where it gives nothing.
 * @throws UsageError where the source fails, or gives what cannot be played.
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
 * The index of the task of a group, where the source tells it without making the task.
 *
 * @throws UsageError where the source fails.
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
