import type { Clock } from "./clock.ts";

/** A signal that aborts with its parents or when its time is over; disposing it stops the timer. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Whether time ran out, as opposed to a parent having aborted. */
  readonly expired: boolean;
}

/**
 * Starts a deadline of `ms` milliseconds. Written with plain listeners that are removed again:
 * `AbortSignal.any()` keeps an entry on each parent until the parent itself is collected, which
 * grows without bound on a signal that lives as long as a run.
 */
export function startDeadline({
  ms,
  parents,
  clock,
}: {
  ms: number;
  parents: readonly (AbortSignal | undefined)[];
  clock: Pick<Clock, "after">;
}): Deadline {
  const controller = new AbortController();
  let expired = false;
  const listeners: (() => void)[] = [];
  for (const parent of parents) {
    if (parent === undefined) continue;
    const onAbort = (): void => controller.abort(parent.reason);
    if (parent.aborted) onAbort();
    parent.addEventListener("abort", onAbort, { once: true });
    listeners.push(() => parent.removeEventListener("abort", onAbort));
  }
  const callOff = clock.after(ms, () => {
    if (controller.signal.aborted) return;
    expired = true;
    controller.abort(new DOMException(`The deadline of ${ms} ms is over`, "TimeoutError"));
  });
  return {
    signal: controller.signal,
    get expired() {
      return expired;
    },
    [Symbol.dispose]() {
      callOff();
      for (const remove of listeners) remove();
    },
  };
}
