import { isPromise } from "node:util/types";
import { UsageError, describeError, isOwnBug } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";

/** The time for which the end of a run waits for async listeners, in milliseconds. */
const lastMs = 10_000;

/** The signal, the error handler and the clock of a run's listeners. */
interface ListenersOptions {
  /** Ends all waits when it aborts. A listener that throws its reason has not failed. */
  readonly signal: AbortSignal;
  /** Called with errors that cannot be thrown to a caller. */
  readonly onFailure: (error: unknown) => void;
  /** The clock of time limits. Default: the machine's clock. */
  readonly clock?: Clock;
}

/**
 * Calls the caller's listeners. Their errors become UsageErrors that name the listener. The types allow async
 * functions: the run does not wait for them, and passes their rejections to `onFailure`.
 */
export class Listeners {
  readonly #options: ListenersOptions;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: ListenersOptions) {
    this.#options = options;
  }

  /**
   * Calls a listener.
   *
   * @param what - A description of the call, such as `call onEpisode for tau-retail/test/7#3`.
   * @throws a UsageError that contains the description. UsageErrors of the listener, errors of this
   *   package, and the signal's reason pass unchanged.
   */
  call(what: string, listener: () => unknown): void {
    let answer: unknown;
    try {
      answer = listener();
    } catch (error) {
      throw this.#isStop(error) ? error : named(error, what);
    }
    if (!isPromise(answer)) return;
    const ended = answer.then(
      () => {},
      (error: unknown) => {
        if (!this.#isStop(error)) this.#options.onFailure(named(error, what));
      },
    );
    this.#pending.add(ended);
    void ended.finally(() => this.#pending.delete(ended));
  }

  /** Calls a listener where no caller can catch its error, which goes to `onFailure` instead. */
  tell(what: string, listener: () => unknown): void {
    try {
      this.call(what, listener);
    } catch (error) {
      if (!this.#isStop(error)) this.#options.onFailure(error);
    }
  }

  /**
   * Calls a function of the caller and waits for its result.
   *
   * @throws as `call()` does.
   */
  async ask<Answer>(what: string, work: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      return await work();
    } catch (error) {
      throw this.#isStop(error) ? error : named(error, what);
    }
  }

  /** Waits for async listeners at the end of the run, at most ten seconds. */
  async settle(): Promise<void> {
    const { signal, clock = systemClock } = this.#options;
    if (this.#pending.size === 0 || signal.aborted) return;
    const work = async (): Promise<void> => void (await Promise.all(this.#pending));
    try {
      await withDeadline(work, { ms: lastMs, signal, clock, onLate: () => {} });
    } catch (error) {
      if (!this.#isStop(error)) throw error;
    }
  }

  #isStop(error: unknown): boolean {
    const { signal } = this.#options;
    return signal.aborted && error === signal.reason;
  }
}

function named(error: unknown, what: string): Error {
  if (error instanceof UsageError) return error;
  if (isOwnBug(error)) return error;
  return new UsageError(`Cannot ${what}: ${describeError(error)}`, { cause: error });
}
