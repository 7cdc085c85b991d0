import { assertInvariant } from "../errors.ts";
import { createAbortController } from "../internal/abort-controller.ts";
import type { Clock } from "../internal/clock.ts";
import { onAbort } from "../internal/on-abort.ts";
import { startPausableTimer, type PausableTimer } from "../internal/pausable-timer.ts";

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
  /** Ends the wait for the call under way. */
  #interrupt: ((reason: unknown) => void) | undefined;
  /** Of the call under way. */
  #timer: PausableTimer | undefined;
  /** Ends the call under way because waits within it took so many milliseconds; absent where it may have none. */
  #expire: ((waitMs: number) => void) | undefined;
  /** What all waits for another within it may take together; it stands still while nobody is waited for. */
  #allowance: PausableTimer | undefined;
  /** Who is waited for within it. */
  #waitCount = 0;

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
    this.#interrupt?.(reason);
  }

  /** The time of the call under way stands still until `goOn()`. */
  pause(): void {
    this.#timer?.pause();
  }

  goOn(): void {
    this.#timer?.goOn();
  }

  /** The call under way, if there is one, is waited for no longer than `ms` milliseconds from now on. */
  shorten(ms: number): void {
    this.#timer?.shorten(ms);
  }

  /** The call under way, if there is one, is waited for `ms` milliseconds longer. */
  lengthen(ms: number): void {
    this.#timer?.lengthen(ms);
  }

  /**
   * Another is waited for within the call under way, if it is one that may: its time stands still until the function
   * that this returns is called. All such waits of a call together take no more than `ms` milliseconds.
   */
  waitWithin(ms: number): () => void {
    const timer = this.#timer;
    const expire = this.#expire;
    if (timer === undefined || expire === undefined) return () => {};
    timer.pause();
    this.#waitCount++;
    if (this.#allowance === undefined) {
      this.#allowance = startPausableTimer(ms, () => expire(ms), this.#clock);
    } else if (this.#waitCount === 1) this.#allowance.goOn();
    let isOver = false;
    return () => {
      // The call may be over, and another under way.
      if (isOver || this.#timer !== timer) return;
      isOver = true;
      this.#waitCount--;
      if (this.#waitCount > 0) return;
      this.#allowance?.pause();
      timer.goOn();
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
   * @param about - `mayWait` says whether another may be waited for within it (see `waitWithin()`).
   * @throws the caller's reason where that is aborted first, `onLate()` where the time is over first, or that
   *   of a wait within it, and whatever the work throws, under the name that `name()` gives it.
   */
  within<Result>(
    ms: number,
    work: (signal: AbortSignal) => Result | Promise<Result>,
    {
      onLate,
      name,
      mayWait = false,
    }: {
      readonly onLate: (waitMs?: number) => Error;
      readonly name: (error: unknown) => unknown;
      readonly mayWait?: boolean;
    },
  ): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.throwIfAborted();
      assertInvariant(this.#interrupt === undefined, "an episode makes one call at a time");
      let isOver = false;
      const end = (): boolean => {
        if (isOver) return false;
        isOver = true;
        this.#timer?.callOff();
        this.#allowance?.callOff();
        this.#timer = undefined;
        this.#allowance = undefined;
        this.#waitCount = 0;
        this.#expire = undefined;
        this.#interrupt = undefined;
        return true;
      };
      const fail = (error: unknown): void => {
        if (!end()) return;
        try {
          this.throwIfAborted();
          reject(name(error));
        } catch (failure) {
          reject(failure);
        }
      };
      const expire = (waitMs?: number): void => {
        fail(onLate(waitMs));
        const late = this.#controller;
        this.#controller = createAbortController();
        late.abort(new DOMException(`The limit of ${waitMs ?? ms} ms is over`, "TimeoutError"));
      };
      this.#interrupt = fail;
      this.#expire = mayWait ? expire : undefined;
      this.#timer = startPausableTimer(ms, expire, this.#clock);
      try {
        Promise.resolve(work(this.#controller.signal)).then((result) => {
          if (end()) resolve(result);
        }, fail);
      } catch (error) {
        fail(error);
      }
    });
  }

  [Symbol.dispose](): void {
    this.#letGo();
  }
}
