import { setMaxListeners } from "node:events";
import { createAbortController } from "../async/abort-controller.ts";
import type { RunResult } from "./live-run.ts";

type StopReason = Exclude<RunResult["end"], "finished">;

/** Stops a run, and keeps the reason. If the run is stopped several times, the first reason counts. */
export class RunStop {
  readonly #stop = createAbortController();
  readonly #interruption = createAbortController();
  readonly #onClose: () => void;
  #reason: StopReason | undefined;
  #crash: { readonly error: unknown } | undefined;

  /** @param onClose - Called when the run starts no further attempts. */
  constructor(onClose: () => void) {
    this.#onClose = onClose;
    // Each running episode listens to both signals.
    setMaxListeners(0, this.signal, this.interruption);
    for (const signal of [this.signal, this.interruption]) {
      signal.addEventListener("abort", () => this.#close("interrupted"), { once: true });
    }
  }

  /** Aborts when the run stops: running episodes are discarded, and the next start resumes them. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts when the run is interrupted: running episodes end as `aborted`. */
  get interruption(): AbortSignal {
    return this.#interruption.signal;
  }

  /** The error that ends the run; `undefined` if none does. */
  get crash(): { readonly error: unknown } | undefined {
    return this.#crash;
  }

  /** The reason for which the run starts no further attempts. */
  get reason(): StopReason {
    return this.#reason ?? "interrupted";
  }

  interrupt(): void {
    this.#interruption.abort();
  }

  /** Stops the run without an error. */
  stop(abortReason: unknown, reason: StopReason = "interrupted"): void {
    this.#close(reason);
    this.#stop.abort(abortReason);
  }

  /** Stops the run with an error. */
  fail(error: unknown): void {
    this.#crash ??= { error };
    this.#stop.abort(error);
  }

  /** Stops the run with an error, unless the error is the reason for which the run was stopped. */
  failUnlessStopped(error: unknown): void {
    const { aborted, reason } = this.signal;
    if (!aborted || error !== reason) this.fail(error);
  }

  #close(reason: StopReason): void {
    this.#reason ??= reason;
    this.#onClose();
  }
}
