import { describeError } from "../../errors.ts";
import { endedBy } from "../../async/ended-by.ts";
import { whyNotJson } from "../../json/why-not-json.ts";
import { OutsideMisuse } from "../../outside.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { AnswerOrder } from "./answer-order.ts";
import type { CallState } from "./call-state.ts";
import type { EpisodeTime } from "./episode-time.ts";
import type { InputSource, OutsideCall, Sampled } from "./input-source.ts";

/** The result of a call through `outside`. */
export type Ended<Result> = { readonly value: Result } | { readonly thrown: unknown };

/**
 * Sees each result of a call through `outside` at the moment when the caller gets it. `isCancelled` is true if the
 * world cancelled the user request that the call served.
 *
 * @returns the result that the caller gets.
 */
type OnEnded = <Result>(ended: Ended<Result>, isCancelled: boolean) => Ended<Result>;

/** Gets each input from the clock, the engine, the user or the world. */
export class LiveInputs implements InputSource {
  readonly #time: EpisodeTime;
  readonly #calls: CallState;
  readonly #order: AnswerOrder;
  readonly #redactor: Pick<Redactor, "thrown" | "without">;

  constructor(parts: {
    readonly time: EpisodeTime;
    readonly calls: CallState;
    readonly order: AnswerOrder;
    readonly redactor: Pick<Redactor, "thrown" | "without">;
  }) {
    this.#time = parts.time;
    this.#calls = parts.calls;
    this.#order = parts.order;
    this.#redactor = parts.redactor;
  }

  now(): number {
    this.#time.readingCount += 1;
    return this.#time.now();
  }

  isLate(test: () => boolean): boolean {
    return test();
  }

  generation(_promptHash: string, sample: () => Promise<Sampled>): Promise<Sampled> {
    return sample();
  }

  async answer<Value>(what: string, work: () => Promise<Value>): Promise<Value> {
    this.#calls.enter(what);
    try {
      this.#calls.requireNoStray(what);
      const value = this.#redactor.without(await work());
      this.#order.flush();
      this.#calls.requireAwaited(what);
      return value;
    } catch (thrown) {
      throw this.#redactor.thrown(thrown);
    } finally {
      this.#calls.exit();
    }
  }

  async call<Result>(
    { index, what, work }: OutsideCall<Result>,
    onEnded?: OnEnded,
  ): Promise<Result> {
    const { userRequest, caller: party } = this.#calls;
    this.#calls.pending.set(index, { what, party, userRequest });
    let ended = await this.#work(what, work);
    await this.#order.turn({
      onTurn: () => {
        this.#calls.pending.delete(index);
        const isCancelled =
          userRequest !== undefined &&
          "thrown" in ended &&
          endedBy(userRequest.signal, ended.thrown);
        if (onEnded !== undefined) ended = onEnded(ended, isCancelled);
      },
    });
    if ("thrown" in ended) throw ended.thrown;
    return ended.value;
  }

  async #work<Result>(what: string, work: () => Result | Promise<Result>): Promise<Ended<Result>> {
    try {
      const given = await this.#startWork(what, work);
      const why = whyNotJson(given);
      if (why !== undefined) {
        throw new OutsideMisuse(
          `what ${what} brought back cannot be written as JSON (${why}), expected plain values`,
        );
      }
      return { value: this.#redactor.without(throughJson(given)) };
    } catch (thrown) {
      return { thrown: this.#redactor.thrown(thrown) };
    }
  }

  #startWork<Result>(what: string, work: () => Result | Promise<Result>): Result | Promise<Result> {
    this.#calls.starting = what;
    try {
      return work();
    } finally {
      this.#calls.starting = undefined;
    }
  }
}

/** Returns the error for a result that was valid but has changed before it could be recorded. */
export function changedResult(what: string, thrown: unknown): OutsideMisuse {
  return new OutsideMisuse(`${what} brought no plain values: ${describeError(thrown)}`);
}

/**
 * Returns a value as a recording would give it back: a text for a `Date`, no members that are `undefined`, no list
 * properties other than items, and no shared references. The first play sees what a replay sees.
 */
function throughJson<Value>(value: Value): Value {
  if (typeof value === "string") return value;
  const text = JSON.stringify(value) as string | undefined;
  return (text === undefined ? undefined : JSON.parse(text)) as Value;
}
