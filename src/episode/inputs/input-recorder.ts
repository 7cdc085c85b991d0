import { RolloutError } from "../../errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { plainCopy } from "../../values/plain-copy.ts";
import type { CallState } from "./call-state.ts";
import type { EpisodeTime } from "./episode-time.ts";
import { hashOf, toRecordedError, type Input, type Inputs } from "./input.ts";
import type { AnswerTerms, InputSource, OutsideCall, Sampled } from "./input-source.ts";
import type { Answer } from "./recording-cursor.ts";
import { changedResult, type Ended, type LiveInputs } from "./live-inputs.ts";

/** Records live inputs, in order. */
export class InputRecorder implements InputSource {
  readonly #live: LiveInputs;
  readonly #time: EpisodeTime;
  readonly #calls: CallState;
  readonly #redactor: Pick<Redactor, "without">;
  /** Called with new inputs. `undefined` after `stop()`. */
  #onInputs: ((inputs: Inputs) => void) | undefined;
  #inputs: Input[] = [];
  #times: number[] = [];
  /** True if the inputs since the last `flush()` contain work that must not be done twice. */
  #hasNewWork = false;

  /** @param parts - `onInputs` is called with new inputs, several at a time. */
  constructor(
    live: LiveInputs,
    parts: {
      readonly time: EpisodeTime;
      readonly calls: CallState;
      readonly redactor: Pick<Redactor, "without">;
      readonly onInputs: (inputs: Inputs) => void;
    },
  ) {
    this.#live = live;
    this.#time = parts.time;
    this.#calls = parts.calls;
    this.#redactor = parts.redactor;
    this.#onInputs = parts.onInputs;
  }

  now(): number {
    const atMs = this.#live.now();
    if (this.#onInputs !== undefined) this.#times.push(atMs);
    return atMs;
  }

  /** Returns true if the time is over, and records that. A result of false is not recorded. */
  isLate(test: () => boolean): boolean {
    const isLate = this.#live.isLate(test);
    if (isLate) this.#add({ type: "late" });
    return isLate;
  }

  async generation(promptHash: string, sample: () => Promise<Sampled>): Promise<Sampled> {
    this.flushWork();
    const input = { type: "generation", promptHash, readings: this.#time.readingCount } as const;
    try {
      const sampled = await this.#live.generation(promptHash, sample);
      if (this.#onInputs === undefined) return sampled;
      const { generation, isLate, isPartial } = sampled;
      this.#add({
        ...input,
        outcome: { value: generation },
        endedAtMs: this.#time.now(),
        ...(isLate && { isLate }),
        ...(isPartial && { isPartial }),
      });
      this.flush();
      return sampled;
    } catch (error) {
      if (error instanceof RolloutError) {
        this.#add({ ...input, outcome: { error: toRecordedError(error) } });
      }
      throw error;
    }
  }

  async answer<Value>(
    what: string,
    work: () => Promise<Value>,
    { repeatable }: AnswerTerms,
  ): Promise<Value> {
    this.flushWork();
    try {
      const value = await this.#live.answer(what, work);
      if (this.#onInputs === undefined) return value;
      // A copy: the world may change the value before it is written.
      this.#addAnswer(what, repeatable ? { hash: hashOf(value) } : { value: plainCopy(value) });
      return value;
    } catch (error) {
      if (error instanceof RolloutError) {
        this.#addAnswer(what, { error: toRecordedError(error) });
      }
      throw error;
    }
  }

  call<Result>(call: OutsideCall<Result>): Promise<Result> {
    return this.#live.call(call, (ended, isCancelled) => {
      try {
        this.#addOutside(call, ended, isCancelled);
        // A call of a party that is not repeatable is made again anyway: the episode cannot continue from it.
        if (call.bound === undefined) this.#hasNewWork = true;
        return ended;
      } catch (thrown) {
        const changed = { thrown: changedResult(call.what, thrown) };
        this.#addOutside(call, changed, false);
        return changed;
      }
    });
  }

  /** Stops recording. Later inputs are not recorded, and the episode cannot be continued from them. */
  stop(): void {
    this.#onInputs = undefined;
  }

  /**
   * Hands over the recorded inputs if they contain work that must not be done twice. Called before each call that may
   * take long, because the process may end during the call.
   */
  flushWork(): void {
    if (this.#hasNewWork) this.flush();
  }

  /** Hands over the inputs recorded since the last time. */
  flush(): void {
    if (this.#onInputs === undefined) return;
    if (this.#inputs.length === 0 && this.#times.length === 0) return;
    const inputs: Inputs = { inputs: this.#inputs, times: this.#times };
    this.#inputs = [];
    this.#times = [];
    this.#hasNewWork = false;
    this.#onInputs(inputs);
  }

  #add(input: Input): void {
    if (this.#onInputs !== undefined) this.#inputs.push(input);
  }

  /** Adds an answer. `begun` is needed only if calls through `outside` are still under way. */
  #addAnswer(what: string, outcome: Answer["outcome"]): void {
    const { pending, startedCount } = this.#calls;
    this.#add({ type: "answer", what, ...(pending.size > 0 && { begun: startedCount }), outcome });
  }

  #addOutside(
    { index, what }: Pick<OutsideCall<unknown>, "index" | "what">,
    ended: Ended<unknown>,
    isCancelled: boolean,
  ): void {
    if (this.#onInputs === undefined) return;
    const { startedCount } = this.#calls;
    const isLast = startedCount === index + 1;
    this.#add({
      type: "outside",
      index,
      what,
      ...(isCancelled && { isGivenUp: true }),
      ...(!isLast && { begun: startedCount }),
      outcome:
        "value" in ended
          ? { value: plainCopy(ended.value) }
          : { error: this.#redactor.without(toRecordedError(ended.thrown)) },
    });
  }
}
