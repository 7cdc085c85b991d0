import type { Clock } from "../../src/internal/clock.ts";
import type { SimulatedClock } from "./simulated-clock.ts";

/** A process of the simulation: it can die, and stand still for a while, and nothing of it happens then. */
export class SimulatedProcess {
  /** In which it waits. */
  readonly clock: Clock;
  isDead = false;
  readonly #world: SimulatedClock;
  readonly #waits = new Set<() => void>();
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

  /** Nothing of it happens any more. */
  die(): void {
    this.isDead = true;
    for (const callOff of [...this.#waits]) callOff();
  }

  /** It does nothing for so long; what was due then happens all at once. */
  freeze(ms: number): void {
    this.#frozenUntilMs = this.#world.now() + ms;
  }

  get isFrozen(): boolean {
    return this.#world.now() < this.#frozenUntilMs;
  }

  #after(ms: number, callback: () => void): () => void {
    if (this.isDead) return () => {};
    let stop = (): void => {};
    const callOff = (): void => {
      stop();
      this.#waits.delete(callOff);
    };
    const wait = (leftMs: number): void => {
      stop = this.#world.after(leftMs, () => {
        if (this.isFrozen) {
          wait(this.#frozenUntilMs - this.#world.now());
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
