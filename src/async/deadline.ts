import { createAbortController } from "./abort-controller.ts";
import { type Clock, systemClock } from "./clock.ts";
import { onAbort } from "./on-abort.ts";
import { startPausableTimer, type PausableTimer } from "./pausable-timer.ts";

/** A signal that aborts with its parents or when its time is over; disposing it stops the timer. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Whether time ran out, as opposed to a parent having aborted. */
  readonly expired: boolean;
  /** In milliseconds; 0 when it is over. */
  leftMs(): number;
  /** Its time stands still until `goOn()`. */
  pause(): void;
  goOn(): void;
  /** It is over in `ms` milliseconds from now on at the latest. */
  shorten(ms: number): void;
}

/** How long a wait may last. */
interface DeadlineOptions {
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
  isOurs = false,
  clock = systemClock,
}: DeadlineOptions & {
  readonly parents: readonly (AbortSignal | undefined)[];
  /** Further parents, to which thousands listen at the same time (see `onAbort()`). */
  readonly shared?: readonly (AbortSignal | undefined)[];
  /** Whether nobody's code but ours is given the signal, which costs less then (see `createAbortController()`). */
  readonly isOurs?: boolean;
}): Deadline {
  return new RunningDeadline({ ms, parents, shared, isOurs, clock });
}

/** A class, as several are started in each turn of each episode. */
class RunningDeadline implements Deadline {
  readonly #controller: AbortController;
  readonly #ms: number;
  readonly #parents: readonly (AbortSignal | undefined)[];
  /** Takes the listeners on shared parents back. */
  readonly #letGo: readonly (() => void)[];
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
    this.#letGo = shared.length === 0 ? none : shared.map((parent) => this.#followShared(parent));
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

  goOn(): void {
    this.#timer.goOn();
  }

  shorten(ms: number): void {
    this.#timer.shorten(ms);
  }

  [Symbol.dispose](): void {
    this.#timer.callOff();
    for (const parent of this.#parents) parent?.removeEventListener("abort", this.#follow);
    for (const letGo of this.#letGo) letGo();
  }
}

const once = { once: true };
const none: readonly never[] = [];

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
