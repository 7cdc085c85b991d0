import type { Clock } from "../../src/async/clock.ts";
import type { SimulatedClock } from "./simulated-clock.ts";

/** A process of the simulation: it can die, or pause for a while. */
export class SimulatedProcess {
  /** The clock that it waits on. */
  readonly clock: Clock;
  isDead = false;
  readonly #world: SimulatedClock;
  readonly #waits = new Set<() => void>();
  /** Waits that were due while it stood still. */
  readonly #held = new Set<() => void>();
  #heldCount = 0;
  #frozenUntilMs = 0;

  constructor(world: SimulatedClock) {
    this.#world = world;
    this.clock = {
      now: world.now,
      after: (ms, callback) => this.#after(ms, callback),
      sleep: async (ms, { signal } = {}) =>
        await new Promise((resolve, reject) => {
          const onAbort = (): void => {
            callOff();
            reject(signal?.reason as Error);
          };
          const callOff = this.#after(ms, () => {
            signal?.removeEventListener("abort", onAbort);
            resolve();
          });
          if (signal?.aborted === true) onAbort();
          signal?.addEventListener("abort", onAbort, { once: true });
        }),
    };
  }

  /** Ends all of its activity. */
  die(): void {
    this.isDead = true;
    for (const callOff of Array.from(this.#waits)) callOff();
  }

  /**
   * Pauses the process for a time; the events that were due then happen all at once, in any order.
   */
  freeze(ms: number): void {
    this.#frozenUntilMs = this.#world.now() + ms;
    for (const hold of Array.from(this.#held)) hold();
  }

  get isFrozen(): boolean {
    return this.#world.now() < this.#frozenUntilMs;
  }

  #after(ms: number, callback: () => void): () => void {
    if (this.isDead) return () => {};
    let stop = (): void => {};
    const callOff = (): void => {
      stop();
      this.#held.delete(hold);
      this.#waits.delete(callOff);
    };
    const hold = (): void => {
      stop();
      this.#held.add(hold);
      this.#heldCount += 1;
      wait(this.#frozenUntilMs - this.#world.now() + ((this.#heldCount * 61) % 97) / 100);
    };
    const wait = (leftMs: number): void => {
      stop = this.#world.after(leftMs, () => {
        this.#held.delete(hold);
        if (this.isFrozen) {
          hold();
          return;
        }
        this.#waits.delete(callOff);
        callback();
      });
    };
    wait(ms);
    this.#waits.add(callOff);
    return callOff;
  }
}
