import type { Input, Inputs } from "./input.ts";

export type Answer = Extract<Input, { type: "answer" }>;
export type OutsideInput = Extract<Input, { type: "outside" }>;

/** A recorded call through `outside`, with its index among the inputs. */
export interface FoundCall {
  readonly input: OutsideInput;
  readonly place: number;
}

/** The position in a recording up to which an episode has been played. */
export class RecordingCursor {
  readonly #inputs: readonly Input[];
  readonly #times: readonly number[];
  #place = 0;
  #timePlace = 0;
  /** The number of calls before the cursor. Recorded calls with a lower index are those of earlier answers. */
  #passedCount = 0;
  /** Indexes of calls after the cursor that were already made. */
  readonly #madeCalls = new Set<number>();

  constructor({ inputs, times }: Inputs) {
    this.#inputs = inputs;
    this.#times = times;
  }

  get isAtEnd(): boolean {
    return this.#place >= this.#inputs.length;
  }

  /** The index of the next input. */
  get place(): number {
    return this.#place;
  }

  /** The next input. `undefined` at the end. */
  get next(): Input | undefined {
    return this.#inputs[this.#place];
  }

  /** The next input that is not a call through `outside`. */
  get nextEvent(): Input | undefined {
    for (let place = this.#place; place < this.#inputs.length; place++) {
      const input = this.#inputs[place]!;
      if (input.type !== "outside") return input;
    }
    return undefined;
  }

  /** True if a later input is an answer. */
  get hasAnswerAhead(): boolean {
    for (let place = this.#place; place < this.#inputs.length; place++) {
      if (this.#inputs[place]!.type === "answer") return true;
    }
    return false;
  }

  /** True if the next call was still under way when a later call started. */
  get nextRanWithLater(): boolean {
    const { next } = this;
    return next?.type === "outside" && (next.begun ?? 0) > next.index + 1;
  }

  advance(): void {
    this.#place += 1;
  }

  skipToEnd(): void {
    this.#place = this.#inputs.length;
    this.#timePlace = this.#times.length;
  }

  /** Returns the next reading of the time. `undefined` at the end. */
  takeTime(): number | undefined {
    const atMs = this.#times[this.#timePlace];
    if (atMs !== undefined) this.#timePlace += 1;
    return atMs;
  }

  /**
   * Finds the recorded call for a call that starts now, and marks it as made. Concurrent calls may start in another
   * order than before, so a call is found by its name. Calls of one name are found in the order in which they start. If
   * the recording ends before the current answer, or the answer did not wait for all calls, some recorded names are
   * missing. A call is then found by its index, as also while the world is disposed of.
   */
  findCall(what: string, index: number, isDisposing: boolean): FoundCall | undefined {
    let named: FoundCall | undefined;
    let indexed: FoundCall | undefined;
    let place = this.#place;
    for (; place < this.#inputs.length; place++) {
      const input = this.#inputs[place]!;
      if (input.type !== "outside") break;
      if (input.index < this.#passedCount || this.#madeCalls.has(input.index)) continue;
      if (input.index === index) indexed = { input, place };
      if (input.what !== what || (named && named.input.index < input.index)) continue;
      named = { input, place };
    }
    const end = this.#inputs[place];
    const areAllKnown = end !== undefined && !("begun" in end) && !isDisposing;
    const found = areAllKnown ? (named ?? indexed) : indexed;
    if (found !== undefined) this.#madeCalls.add(found.input.index);
    return found;
  }

  /** Moves past calls that were already made, or that were made for answers before the cursor. */
  skipMadeCalls(): void {
    for (; this.#place < this.#inputs.length; this.#place++) {
      const input = this.#inputs[this.#place]!;
      if (input.type !== "outside") return;
      if (!this.#madeCalls.delete(input.index) && input.index >= this.#passedCount) return;
    }
  }

  /**
   * Skips a recorded answer and all calls through `outside` that were made for it. Now the
   * answering party may make fewer calls than before, or none. Later calls keep their recorded
   * indexes.
   *
   * @param startedCount - The number of calls through `outside` so far.
   * @returns this number plus the number of skipped calls.
   */
  pass(answer: Answer, startedCount: number): number {
    let count = Math.max(startedCount, answer.begun ?? 0);
    for (; this.#inputs[this.#place] !== answer; this.#place++) {
      const input = this.#inputs[this.#place]!;
      if (input.type === "outside") count = Math.max(count, input.index + 1);
    }
    this.#place += 1;
    this.#passedCount = count;
    this.skipMadeCalls();
    return count;
  }
}
