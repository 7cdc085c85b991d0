import { setImmediate as nextLoop } from "node:timers/promises";
import type { Clock } from "../../src/async/clock.ts";

/** Simulated time, which passes when no other work is left. */
export class SimulatedClock implements Clock {
  #nowMs = 0;
  readonly #waits = new Map<number, { readonly dueMs: number; readonly callback: () => void }>();
  #waitCount = 0;
  /** Counts events: while it rises, work is left. */
  #activity = 0;
  /** Notified of every event. */
  onActivity = (): void => {};

  readonly now = (): number => this.#nowMs;

  readonly after = (ms: number, callback: () => void): (() => void) => {
    this.note();
    const id = this.#waitCount++;
    if (ms !== Infinity) this.#waits.set(id, { dueMs: this.#nowMs + ms, callback });
    return () => this.#waits.delete(id);
  };

  readonly sleep = (ms: number, { signal }: { signal?: AbortSignal } = {}): Promise<void> =>
    new Promise((resolve, reject) => {
      const onAbort = (): void => {
        callOff();
        reject(signal?.reason as Error);
      };
      const callOff = this.after(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });

  /** Something happened. */
  note(): void {
    this.#activity += 1;
    this.onActivity();
  }

  /**
   * Runs all events until `isOver`; time advances to the next wait whenever no other event is due.
   * @throws if no wait is left, or time exceeds the limit: something hangs.
   */
  async run(isOver: () => boolean, limitMs: number): Promise<void> {
    while (!isOver()) {
      await this.#settle();
      if (isOver()) return;
      const [id, next] = this.#nextWait() ?? [];
      if (id === undefined || next === undefined)
        throw new Error("nothing is left to wait for: it hangs");
      if (next.dueMs > limitMs) throw new Error(`it hangs: ${limitMs} ms have passed`);
      this.#waits.delete(id);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.callback();
    }
  }

  /** Waits until no more events happen by themselves. */
  async #settle(): Promise<void> {
    for (let quiet = 0; quiet < 2;) {
      const before = this.#activity;
      await nextLoop();
      quiet = this.#activity === before ? quiet + 1 : 0;
    }
  }

  #nextWait() {
    let first: [number, { readonly dueMs: number; readonly callback: () => void }] | undefined;
    for (const entry of this.#waits) {
      if (first === undefined || entry[1].dueMs < first[1].dueMs) first = entry;
    }
    return first;
  }
}
