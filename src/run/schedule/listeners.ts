import { isPromise } from "node:util/types";
import { UsageError, describeError, isOwnBug } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { withDeadline } from "../../async/deadline.ts";

/** How long is waited at the end for what listeners still do, milliseconds. */
const lastMs = 10_000;

/** To what listeners belong. */
interface ListenersOptions {
  /** Aborted, nobody is waited for; whoever throws its reason has no failure. */
  readonly signal: AbortSignal;
  /** Told of what nobody who called them was told of. */
  readonly onFailure: (error: unknown) => void;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/**
 * Calls whoever is told of something, who may be anyone. What they throw leaves as a UsageError that says who was
 * told of what. The types let them be async functions: nobody waits for what these do, and what they reject with is
 * told to whoever made this.
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
   * @param what - Such as `tell onEpisode of tau-retail/test/7#3`.
   * @throws UsageError naming that; its own UsageErrors, our own bugs and the signal's reason as they are.
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

  /** Calls a listener from where nobody can be told of what it throws: `onFailure` is, of that as well. */
  tell(what: string, listener: () => unknown): void {
    try {
      this.call(what, listener);
    } catch (error) {
      if (!this.#isStop(error)) this.#options.onFailure(error);
    }
  }

  /**
   * Asks somebody for something, and waits for it.
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

  /** Waits for what they still do, at the end: not for long. */
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
