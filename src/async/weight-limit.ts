import { withResolvers } from "./with-resolvers.ts";

/**
 * Limits the work that runs at the same time by its weight, for example its memory. Work starts in the order of the
 * calls.
 */
export class WeightLimit {
  readonly #limit: number;
  #running = 0;
  readonly #waiting: { readonly weight: number; readonly start: () => void }[] = [];

  /** @param limit - Maximum sum of the weights of running work. Heavier work runs alone. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Runs the work as soon as there is room for its weight. Resolves with its result. */
  async run<Result>(weight: number, work: () => Promise<Result>): Promise<Result> {
    if (this.#waiting.length > 0 || !this.#hasRoomFor(weight)) {
      const turn = withResolvers();
      this.#waiting.push({ weight, start: turn.resolve });
      await turn.promise;
    } else {
      this.#running += weight;
    }
    try {
      return await work();
    } finally {
      this.#running -= weight;
      this.#startNext();
    }
  }

  #startNext(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined || !this.#hasRoomFor(next.weight)) return;
      this.#waiting.shift();
      this.#running += next.weight;
      next.start();
    }
  }

  #hasRoomFor(weight: number): boolean {
    return this.#running === 0 || this.#running + weight <= this.#limit;
  }
}
