import { assertInvariant } from "../../errors.ts";
import { createAbortController } from "../../async/abort-controller.ts";
import type { Clock } from "../../async/clock.ts";
import { onAbort } from "../../async/on-abort.ts";
import { startPausableTimer, type PausableTimer } from "../../async/pausable-timer.ts";

/** The errors of a call that times out or fails. */
export interface CallTerms {
  /** Returns the error for a timeout. `waitMs` is present if a wait within the call exceeded this many milliseconds. */
  onLate(waitMs?: number): Error;
  /** Returns the error to throw for an error of the call. */
  name(error: unknown): unknown;
  /** True if the call may wait for another party (see `waitWithin()`). */
  readonly mayWait: boolean;
}

/** A call under way. */
export interface WatchedCall {
  /** Aborts when the caller aborts or the call's time is over. */
  readonly signal: AbortSignal;
}

interface RunningCall extends WatchedCall {
  readonly terms: CallTerms;
  readonly ms: number;
  readonly reject: (error: unknown) => void;
  readonly timer: PausableTimer;
  /** Time limit for all waits within the call together. It is paused while there is no wait. */
  allowance: PausableTimer | undefined;
  /** Number of waits within the call. */
  waitCount: number;
}

/**
 * Time limits for an episode's calls to foreign code, one call at a time. The calls share an abort signal, which is
 * replaced after a timeout. Sharing makes turns cheap: otherwise a thousand episodes would create, link and drop
 * several signals a turn. Dispose of the watch to remove its listener from the caller's signal.
 */
export class CallWatch implements Disposable {
  readonly #caller: AbortSignal;
  readonly #letGo: () => void;
  readonly #clock: Pick<Clock, "after" | "now">;
  #controller = createAbortController();
  #call: RunningCall | undefined;

  /** Returns true for the error that ended the episode's playback. */
  readonly ownsStop: (thrown: unknown) => boolean;

  /** @param ownsStop - Default: the episode has no playback. */
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
    if (this.#call !== undefined) this.fail(this.#call, reason);
  }

  /** Pauses the time limit of the call under way until `goOn()`. */
  pause(): void {
    this.#call?.timer.pause();
  }

  goOn(): void {
    this.#call?.timer.resume();
  }

  /** Shortens the remaining time of the call under way to `ms` milliseconds. */
  shorten(ms: number): void {
    this.#call?.timer.shorten(ms);
  }

  /** Gives the call under way `ms` more milliseconds. */
  lengthen(ms: number): void {
    this.#call?.timer.lengthen(ms);
  }

  /**
   * Starts a wait for another party within the call under way. The call's time limit is paused until you call the
   * returned function. All waits of a call together may take `ms` milliseconds. Does nothing if the call may not wait.
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
      // Another call may be under way by now.
      if (isOver || this.#call !== call) return;
      isOver = true;
      call.waitCount--;
      if (call.waitCount > 0) return;
      call.allowance?.pause();
      call.timer.resume();
    };
  }

  /**
   * Throws if the caller has aborted.
   *
   * @throws the caller's reason if the caller has aborted.
   */
  throwIfAborted(): void {
    this.#caller.throwIfAborted();
  }

  /**
   * Starts the time limit of a call. `reject` is called with the error if the call fails, the caller aborts, or `ms`
   * milliseconds are over.
   *
   * @throws the caller's reason if the caller has aborted.
   */
  start(ms: number, terms: CallTerms, reject: (error: unknown) => void): WatchedCall {
    this.throwIfAborted();
    assertInvariant(this.#call === undefined, "an episode makes one call at a time");
    const timer = startPausableTimer(ms, () => this.#expire(call), this.#clock);
    const { signal } = this.#controller;
    const call: RunningCall = {
      signal,
      terms,
      ms,
      timer,
      reject,
      allowance: undefined,
      waitCount: 0,
    };
    this.#call = call;
    return call;
  }

  /** Ends the call with an error. Does nothing if the call has ended. */
  fail(call: WatchedCall, error: unknown): void {
    const running = this.#call;
    if (running === undefined || !this.end(call)) return;
    try {
      this.throwIfAborted();
      running.reject(running.terms.name(error));
    } catch (failure) {
      running.reject(failure);
    }
  }

  /** Ends the call. Returns false if it had ended before. */
  end(call: WatchedCall): boolean {
    const running = this.#call;
    if (running === undefined || running !== call) return false;
    running.timer.callOff();
    running.allowance?.callOff();
    this.#call = undefined;
    return true;
  }

  /** Ends the call because its time limit is over, or that of its waits (`waitMs` milliseconds). */
  #expire(call: RunningCall, waitMs?: number): void {
    this.fail(call, call.terms.onLate(waitMs));
    const late = this.#controller;
    this.#controller = createAbortController();
    late.abort(new DOMException(`The limit of ${waitMs ?? call.ms} ms is over`, "TimeoutError"));
  }

  [Symbol.dispose](): void {
    this.#letGo();
  }
}
