import { plainCopy } from "../../values/plain-copy.ts";
import type { AnswerOrder } from "./answer-order.ts";
import type { CallState } from "./call-state.ts";
import { fromRecordedError } from "./input.ts";
import type { FoundCall, OutsideInput, RecordingCursor } from "./recording-cursor.ts";

/**
 * Longest time for which a recorded result waits for calls that were made before it, in milliseconds. The second value
 * is for calls that ran at the same time, and for parties with a long time limit, such as a person.
 */
const missingMs = 5_000;
const longestMissingMs = 60_000;

/**
 * Hands over recorded results of calls through `outside` in their recorded order. A result waits until the calls that
 * were made before it have been made again. After a time limit it no longer waits: the calls are missing.
 */
export class RecordedCalls {
  readonly #cursor: RecordingCursor;
  readonly #calls: CallState;
  readonly #order: AnswerOrder;
  readonly #isRescored: boolean;
  /** Time limit of the current answer, in milliseconds. The initial value holds while the user is opened. */
  #limitMs = 2 * missingMs;
  /** Index in the recording of the first missing call of the current answer. */
  #missingPlace: number | undefined;
  /** Number of calls of the current answer that did not start in time. Each is waited for once. */
  #missingCount = 0;
  /** Recorded errors by which the world cancelled a request to the user. */
  #cancellations: WeakSet<Error> | undefined;

  /** @param parts - `isRescored` is true if the episode gets a new score, which may make fewer calls. */
  constructor(parts: {
    readonly cursor: RecordingCursor;
    readonly calls: CallState;
    readonly order: AnswerOrder;
    readonly isRescored: boolean;
  }) {
    this.#cursor = parts.cursor;
    this.#calls = parts.calls;
    this.#order = parts.order;
    this.#isRescored = parts.isRescored;
  }

  /** Records that a call to the user or the world starts, with its time limit in milliseconds. */
  startAnswer(limitMs: number): void {
    this.#limitMs = limitMs;
    this.#missingPlace = undefined;
    this.#missingCount = 0;
  }

  /**
   * Waits for the turn of a recorded result, and returns it.
   *
   * @throws the recorded error if the call threw one.
   */
  async result({ input, place }: FoundCall): Promise<unknown> {
    await this.#order.turn({
      place,
      waitMs: () => this.#waitMs(place, input),
      onMissing: () => {
        this.#missingPlace = this.#cursor.place;
        const { begun = 0 } = input;
        this.#missingCount = Math.max(this.#missingCount, begun - this.#calls.startedCount);
      },
    });
    // A copy: the caller may change it, and others may play from the same recording.
    return plainCopy(this.#open(input));
  }

  /** True if the error comes from the recording, and the world cancelled a request to the user there. */
  isCancellation(thrown: unknown): boolean {
    return thrown instanceof Error && this.#cancellations?.has(thrown) === true;
  }

  #open({ outcome, isGivenUp }: OutsideInput): unknown {
    if (!("error" in outcome)) return outcome.value;
    const error = fromRecordedError(outcome.error);
    if (isGivenUp) (this.#cancellations ??= new WeakSet()).add(error);
    throw error;
  }

  /**
   * Returns how long a result still waits for earlier calls, in milliseconds. At most half of the answer's time limit,
   * because a timeout would hide that a call is missing, which is a divergence.
   */
  #waitMs(place: number, { begun = 0 }: OutsideInput): number {
    const isAfterMissing = this.#cursor.place < place && this.#cursor.next?.type === "outside";
    // The call ran with others that have not started yet.
    const isEarly = this.#calls.startedCount + this.#missingCount < begun;
    const most = (ms: number): number => Math.min(ms, this.#limitMs / 2);
    const ranWithOthers = isEarly || (isAfterMissing && this.#cursor.nextRanWithLater);
    if (ranWithOthers && this.#missingPlace === undefined) {
      const isNewScore = this.#isRescored && this.#calls.current === "score";
      return most(isNewScore ? missingMs : longestMissingMs);
    }
    if (!isAfterMissing) return isEarly ? most(missingMs) : 0;
    return this.#cursor.place === this.#missingPlace ? 0 : most(missingMs);
  }
}
