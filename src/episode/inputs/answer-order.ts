import type { Clock } from "../../async/clock.ts";

/** An answer that waits for its turn. */
interface WaitingAnswer {
  /** Its place in the recording; absent for one that came live, which comes behind all that have one. */
  readonly place?: number;
  /**
   * For how long it still waits for what came before it when it was recorded, in milliseconds: 0 where all is there.
   * Absent where nothing is known of that.
   */
  readonly waitMs?: () => number;
  /** Told where it waited for that in vain. */
  readonly onMissing?: () => void;
  /** What is to happen in the moment in which it is handed over; what it throws, whoever waits is thrown. */
  readonly onTurn?: () => void;
}

interface Waiting extends WaitingAnswer {
  readonly resolve: () => void;
  readonly reject: (thrown: unknown) => void;
}

/**
 * Hands answers of calls that run at once over one after the other, each in a round of the event loop in which
 * nothing is left to run of what those before it led to: live in the order in which they come, from a
 * recording in the order in which they came. So what they lead to, such as the next call of each of two
 * chains, begins in the same order both times.
 */
export class AnswerOrder {
  readonly #clock: Pick<Clock, "after">;
  #waiting: Waiting[] = [];
  #isServing = false;
  /** Nobody cares for the order any more. */
  #isFree = false;
  /** Has the answer that is next looked at again. */
  #wake: (() => void) | undefined;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Waits for an answer's turn. */
  turn(answer: WaitingAnswer): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { ...answer, resolve, reject };
      if (this.#isFree) {
        handOver(waiting);
        return;
      }
      const { place = Infinity } = answer;
      const behind = this.#waiting.findIndex((other) => (other.place ?? Infinity) > place);
      this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, waiting);
      if (!this.#isServing) void this.#serve();
    });
  }

  /** Whether an answer waits for a call that was made before it came. */
  get isWaiting(): boolean {
    return this.#wake !== undefined;
  }

  /** What an answer may have waited for has come. */
  look(): void {
    this.#wake?.();
  }

  /** Hands over at once what waits and is no longer in anyone's way. */
  flush(): void {
    for (const waiting of this.#waiting.splice(0)) handOver(waiting);
    this.look();
  }

  /** The same, and no answer waits from now on. */
  letGo(): void {
    this.#isFree = true;
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
        if (await this.#hasNews(waitMs)) continue;
        // Whoever does not call this time is found out where the answers are used.
        next.onMissing?.();
        this.flush();
        continue;
      }
      this.#waiting.shift();
      handOver(next);
    }
    this.#isServing = false;
  }

  /** Waits for a call that was made before this answer came; false where none came in that time. */
  async #hasNews(waitMs: number): Promise<boolean> {
    const hasNews = await new Promise<boolean>((resolve) => {
      const callOff = this.#clock.after(waitMs, () => resolve(false));
      this.#wake = () => {
        callOff();
        resolve(true);
      };
    });
    this.#wake = undefined;
    return hasNews;
  }
}

/** Throws nothing: those behind it wait for whoever hands over. */
function handOver({ onTurn, resolve, reject }: Waiting): void {
  try {
    onTurn?.();
    resolve();
  } catch (thrown) {
    reject(thrown);
  }
}

/** Resolves when all promises have been kept to which what runs now leads. */
function nextRound(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
