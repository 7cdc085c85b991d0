import { type Clock, systemClock } from "./clock.ts";
import { onAbort } from "./on-abort.ts";
import { startPausableTimer } from "./pausable-timer.ts";

/** A signal that aborts with its parents or when its time is over; disposing it stops the timer. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Whether time ran out, as opposed to a parent having aborted. */
  readonly expired: boolean;
  /** In milliseconds; 0 when it is over. */
  readonly leftMs: () => number;
  /** Its time stands still until `goOn()`. */
  readonly pause: () => void;
  readonly goOn: () => void;
}

/** How long a wait may last. */
export interface DeadlineOptions {
  /** In milliseconds; `Infinity` for no end of its own. */
  readonly ms: number;
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, "after" | "now">;
}

/**
 * Starts a deadline. Written with plain listeners that are removed again: `AbortSignal.any()` keeps
 * an entry on each parent until the parent itself is collected, which grows without bound on a signal
 * that lives as long as a run.
 */
export function startDeadline({
  ms,
  parents,
  shared = [],
  clock = systemClock,
}: DeadlineOptions & {
  readonly parents: readonly (AbortSignal | undefined)[];
  /** Further parents, to which thousands listen at the same time (see `onAbort()`). */
  readonly shared?: readonly (AbortSignal | undefined)[];
}): Deadline {
  const controller = new AbortController();
  let expired = false;
  const listeners: (() => void)[] = [];
  for (const parent of parents) {
    if (parent === undefined) continue;
    const follow = (): void => controller.abort(parent.reason);
    if (parent.aborted) follow();
    parent.addEventListener("abort", follow, { once: true });
    listeners.push(() => parent.removeEventListener("abort", follow));
  }
  for (const parent of shared) {
    if (parent === undefined) continue;
    if (parent.aborted) controller.abort(parent.reason);
    listeners.push(onAbort(parent, () => controller.abort(parent.reason)));
  }
  const expire = (): void => {
    if (controller.signal.aborted) return;
    expired = true;
    controller.abort(new DOMException(`The deadline of ${ms} ms is over`, "TimeoutError"));
  };
  const timer = startPausableTimer(ms, expire, clock);
  return {
    signal: controller.signal,
    get expired() {
      return expired;
    },
    leftMs: () => timer.leftMs(),
    pause: () => timer.pause(),
    goOn: () => timer.goOn(),
    [Symbol.dispose]() {
      timer.callOff();
      for (const remove of listeners) remove();
    },
  };
}

/**
 * Runs `work` with a signal that aborts when the outer signal does or when the time is over, and does
 * not wait for work that ignores its signal. Where the time is over first, what `onLate` returns or
 * throws takes the place of the result.
 *
 * @throws the outer signal's reason where that is aborted first, and whatever the work throws.
 */
export async function withDeadline<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  {
    signal,
    onLate,
    ...options
  }: DeadlineOptions & { readonly signal: AbortSignal; readonly onLate: () => Result },
): Promise<Result> {
  signal.throwIfAborted();
  using deadline = startDeadline({ ...options, parents: [signal] });
  try {
    return await new Promise<Result>((resolve, reject) => {
      deadline.signal.addEventListener("abort", () => reject(deadline.signal.reason as Error));
      work(deadline.signal).then(resolve, reject);
    });
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.expired) return onLate();
    throw error;
  }
}
