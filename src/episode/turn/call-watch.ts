import { assertInvariant } from "../../errors.ts";
import { createAbortController } from "../../async/abort-controller.ts";
import type { Clock } from "../../async/clock.ts";
import { onAbort } from "../../async/on-abort.ts";
import { startPausableTimer, type PausableTimer } from "../../async/pausable-timer.ts";

/** What a call comes to that is not answered in time, or whose work throws. */
export interface CallTerms {
  /** What is thrown where the time is over, or that of a wait within it, after so many milliseconds. */
  onLate(waitMs?: number): Error;
  /** What is thrown in the place of what the work threw. */
  name(error: unknown): unknown;
  /** Whether another may be waited for within it (see `waitWithin()`). */
  readonly mayWait: boolean;
}

/** A call under way. */
interface Call {
  readonly terms: CallTerms;
  readonly ms: number;
  /** Ends the wait for it. */
  readonly reject: (error: unknown) => void;
  readonly timer: PausableTimer;
  /** What all waits for another within it may take together; it stands still while nobody is waited for. */
  allowance: PausableTimer | undefined;
  /** Who is waited for within it. */
  waitCount: number;
}

/**
 * Watches the calls that an episode makes to code that is not ours, one after the other: each has a time
 * limit, and they share a signal, which aborts with the caller's or when a call's time is over; what is
 * called after that has another. Sharing makes a turn cheap: a thousand episodes would otherwise make, link
 * and drop several a turn. Disposing it lets go of the caller's signal.
 */
export class CallWatch implements Disposable {
  readonly #caller: AbortSignal;
  readonly #letGo: () => void;
  readonly #clock: Pick<Clock, "after" | "now">;
  #controller = createAbortController();
  #call: Call | undefined;

  /** Whether it is by the episode itself that something was thrown which ends its playback. */
  readonly ownsStop: (thrown: unknown) => boolean;

  /** @param ownsStop - Default: there is no playback. */
  constructor(
    caller: AbortSignal,
    clock: Pick<Clock, "after" | "now">,
    ownsStop: (thrown: unknown) => boolean = () => false,
  ) {
    this.#caller = caller;
    this.#clock = clock;
    this.ownsStop = ownsStop;
    this.#letGo = onAbort(caller, () => this.#onAbort());
    if (caller.aborted) this.#onAbort();
  }

  #onAbort(): void {
    const { reason } = this.#caller as { readonly reason: unknown };
    this.#controller.abort(reason);
    if (this.#call !== undefined) this.#fail(this.#call, reason);
  }

  /** The time of the call under way stands still until `goOn()`. */
  pause(): void {
    this.#call?.timer.pause();
  }

  goOn(): void {
    this.#call?.timer.resume();
  }

  /** The call under way, if there is one, is waited for no longer than `ms` milliseconds from now on. */
  shorten(ms: number): void {
    this.#call?.timer.shorten(ms);
  }

  /** The call under way, if there is one, is waited for `ms` milliseconds longer. */
  lengthen(ms: number): void {
    this.#call?.timer.lengthen(ms);
  }

  /**
   * Another is waited for within the call under way, if it is one that may: its time stands still until the function
   * that this returns is called. All such waits of a call together take no more than `ms` milliseconds.
   */
  waitWithin(ms: number): () => void {
    const call = this.#call;
    if (call?.terms.mayWait !== true) return () => {};
    call.timer.pause();
    call.waitCount++;
    if (call.allowance === undefined) {
      call.allowance = startPausableTimer(ms, () => this.#expire(call, ms), this.#clock);
    } else if (call.waitCount === 1) call.allowance.resume();
    let isOver = false;
    return () => {
      // The call may be over, and another under way.
      if (isOver || this.#call !== call) return;
      isOver = true;
      call.waitCount--;
      if (call.waitCount > 0) return;
      call.allowance?.pause();
      call.timer.resume();
    };
  }

  /** @throws the caller's reason where the caller has aborted. */
  throwIfAborted(): void {
    this.#caller.throwIfAborted();
  }

  /**
   * Makes a call and waits for it, no longer than `ms` milliseconds; work that ignores its signal is not
   * waited for.
   *
   * @throws the caller's reason where that is aborted first, `onLate()` where the time is over first, or that
   *   of a wait within it, and whatever the work throws, under the name that `name()` gives it.
   */
  within<Result>(
    ms: number,
    work: (signal: AbortSignal) => Result | Promise<Result>,
    terms: CallTerms,
  ): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.throwIfAborted();
      assertInvariant(this.#call === undefined, "an episode makes one call at a time");
      const timer = startPausableTimer(ms, () => this.#expire(call), this.#clock);
      const call: Call = { terms, ms, timer, reject, allowance: undefined, waitCount: 0 };
      this.#call = call;
      try {
        Promise.resolve(work(this.#controller.signal)).then(
          (result) => {
            if (this.#end(call)) resolve(result);
          },
          (error: unknown) => this.#fail(call, error),
        );
      } catch (error) {
        this.#fail(call, error);
      }
    });
  }

  #fail(call: Call, error: unknown): void {
    if (!this.#end(call)) return;
    try {
      this.throwIfAborted();
      call.reject(call.terms.name(error));
    } catch (failure) {
      call.reject(failure);
    }
  }

  /** Ends the call because it, or waits within it, took so many milliseconds. */
  #expire(call: Call, waitMs?: number): void {
    this.#fail(call, call.terms.onLate(waitMs));
    const late = this.#controller;
    this.#controller = createAbortController();
    late.abort(new DOMException(`The limit of ${waitMs ?? call.ms} ms is over`, "TimeoutError"));
  }

  /** Whether the call was under way until now. */
  #end(call: Call): boolean {
    if (this.#call !== call) return false;
    call.timer.callOff();
    call.allowance?.callOff();
    this.#call = undefined;
    return true;
  }

  [Symbol.dispose](): void {
    this.#letGo();
  }
}
