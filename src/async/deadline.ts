import { createAbortController } from "./abort-controller.ts";
import { type Clock, systemClock } from "./clock.ts";
import { onAbort } from "./on-abort.ts";
import { startPausableTimer, type PausableTimer } from "./pausable-timer.ts";

/** A signal that aborts with its parents or when its time is over. Dispose of it to stop the timer. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** True if the time ran out, false if a parent aborted. */
  readonly expired: boolean;
  /** The remaining time in milliseconds; 0 when it is over. */
  leftMs(): number;
  /** Stops the time until `resume()`. */
  pause(): void;
  resume(): void;
  /** Ends the deadline in at most `ms` milliseconds from now. */
  shorten(ms: number): void;
}

/** The time limit of a wait. */
interface DeadlineOptions {
  /** In milliseconds; `Infinity` for no limit. */
  readonly ms: number;
  /** Default: the machine's clock. */
  readonly clock?: Pick<Clock, "after" | "now">;
}

/**
 * Starts a deadline. Uses plain listeners that are removed at the end: `AbortSignal.any()` keeps an entry on each
 * parent until the parent is collected. That is a memory leak if the parent lives for a complete run.
 */
export function startDeadline({
  ms,
  parents,
  shared = [],
  isOurs = false,
  clock = systemClock,
}: DeadlineOptions & {
  readonly parents: readonly (AbortSignal | undefined)[];
  /** Further parents that thousands of deadlines share (see `onAbort()`). */
  readonly shared?: readonly (AbortSignal | undefined)[];
  /** True if only our code gets the signal, which is cheaper (see `createAbortController()`). */
  readonly isOurs?: boolean;
}): Deadline {
  return new RunningDeadline({ ms, parents, shared, isOurs, clock });
}

/** A class for speed, as each turn of each episode starts several. */
class RunningDeadline implements Deadline {
  readonly #controller: AbortController;
  readonly #ms: number;
  readonly #parents: readonly (AbortSignal | undefined)[];
  /** Functions that remove the listeners on shared parents. */
  readonly #unsubscribe: readonly (() => void)[];
  readonly #timer: PausableTimer;
  #expired = false;

  constructor({
    ms,
    parents,
    shared,
    isOurs,
    clock,
  }: Required<DeadlineOptions> & {
    readonly parents: readonly (AbortSignal | undefined)[];
    readonly shared: readonly (AbortSignal | undefined)[];
    readonly isOurs: boolean;
  }) {
    this.#controller = isOurs ? new AbortController() : createAbortController();
    this.#ms = ms;
    this.#parents = parents;
    for (const parent of parents) {
      if (parent?.aborted) this.#controller.abort(parent.reason);
      else parent?.addEventListener("abort", this.#follow, once);
    }
    this.#unsubscribe =
      shared.length === 0 ? none : shared.map((parent) => this.#followShared(parent));
    this.#timer = startPausableTimer(ms, () => this.#expire(), clock);
  }

  readonly #follow = ({ target }: Event): void => {
    this.#controller.abort((target as AbortSignal).reason);
  };

  #followShared(parent: AbortSignal | undefined): () => void {
    if (parent === undefined) return () => {};
    if (parent.aborted) this.#controller.abort(parent.reason);
    return onAbort(parent, () => this.#controller.abort(parent.reason));
  }

  #expire(): void {
    if (this.#controller.signal.aborted) return;
    this.#expired = true;
    const message = `The deadline of ${this.#ms} ms is over`;
    this.#controller.abort(new DOMException(message, "TimeoutError"));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get expired(): boolean {
    return this.#expired;
  }

  leftMs(): number {
    return this.#timer.leftMs();
  }

  pause(): void {
    this.#timer.pause();
  }

  resume(): void {
    this.#timer.resume();
  }

  shorten(ms: number): void {
    this.#timer.shorten(ms);
  }

  [Symbol.dispose](): void {
    this.#timer.callOff();
    for (const parent of this.#parents) parent?.removeEventListener("abort", this.#follow);
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }
}

const once = { once: true };
const none: readonly never[] = [];

/**
 * Runs `work` with a signal that aborts with the outer signal or when the time is over. Does not wait for work that
 * ignores its signal. On timeout, the result is what `onLate` returns or throws.
 *
 * @throws the outer signal's reason if it aborts first, and any error of `work`.
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
