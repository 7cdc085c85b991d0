import type { Clock } from "../../async/clock.ts";

/** A result of a call through `outside` that waits to be handed over. */
interface WaitingAnswer {
  /** The index of the call in the recording. Absent for a live result, which comes after all recorded results. */
  readonly place?: number;
  /**
   * Returns how long the result still waits for earlier calls to be made, in milliseconds; 0 if all have been made.
   * Absent for a live result.
   */
  readonly waitMs?: () => number;
  /** Called if the earlier calls were not made in time. */
  readonly onMissing?: () => void;
  /** Called when the result is handed over. If it throws, the caller gets its error. */
  readonly onTurn?: () => void;
}

interface Waiting extends WaitingAnswer {
  readonly resolve: () => void;
  readonly reject: (thrown: unknown) => void;
}

/**
 * Hands over the results of concurrent calls one at a time, each in its own round of the event loop: live results as
 * they arrive, recorded results in their recorded order. The reactions to one result have run before the next is handed
 * over. So later calls, for example in two concurrent chains, start in the same order when the episode is played again.
 */
export class AnswerOrder {
  readonly #clock: Pick<Clock, "after">;
  #waiting: Waiting[] = [];
  #isServing = false;
  /** True once the order is not kept any more: results are handed over as they arrive. */
  #isDisabled = false;
  /** Checks the next result again. */
  #wake: (() => void) | undefined;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Resolves when it is the result's turn. */
  turn(answer: WaitingAnswer): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { ...answer, resolve, reject };
      if (this.#isDisabled) {
        handOver(waiting);
        return;
      }
      const { place = Infinity } = answer;
      const next = this.#waiting.findIndex((other) => (other.place ?? Infinity) > place);
      this.#waiting.splice(next < 0 ? this.#waiting.length : next, 0, waiting);
      if (!this.#isServing) void this.#serve();
    });
  }

  /** True while a result waits for an earlier call. */
  get isWaiting(): boolean {
    return this.#wake !== undefined;
  }

  /** Checks the waiting result again, because a call was made. */
  recheck(): void {
    this.#wake?.();
  }

  /** Hands over all waiting results immediately. */
  flush(): void {
    for (const waiting of this.#waiting.splice(0)) handOver(waiting);
    this.recheck();
  }

  /** Hands over all waiting results immediately, and all later results when they arrive. */
  disable(): void {
    this.#isDisabled = true;
    this.flush();
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    while (this.#waiting.length > 0) {
      await nextRound();
      const [next] = this.#waiting;
      if (next === undefined) break;
      const waitMs = next.waitMs?.() ?? 0;
      if (waitMs > 0) {
        if (await this.#waitForCall(waitMs)) continue;
        // A missing call is noticed later, where the results are used.
        next.onMissing?.();
        this.flush();
        continue;
      }
      this.#waiting.shift();
      handOver(next);
    }
    this.#isServing = false;
  }

  /** Waits for an earlier call. Resolves with false if none is made in time. */
  async #waitForCall(waitMs: number): Promise<boolean> {
    const wasMade = await new Promise<boolean>((resolve) => {
      const cancel = this.#clock.after(waitMs, () => resolve(false));
      this.#wake = () => {
        cancel();
        resolve(true);
      };
    });
    this.#wake = undefined;
    return wasMade;
  }
}

/** Delivers the result. Never throws, because other results wait after this one. */
function handOver({ onTurn, resolve, reject }: Waiting): void {
  try {
    onTurn?.();
    resolve();
  } catch (thrown) {
    reject(thrown);
  }
}

/** Resolves in the next round of the event loop, after all reactions of the current round. */
function nextRound(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
