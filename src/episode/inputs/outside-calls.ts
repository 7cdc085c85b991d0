import type { Party } from "../../errors.ts";
import { OutsideMisuse, type Outside } from "../../outside.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { describe } from "../check/foreign-value.ts";
import type { AnswerOrder } from "./answer-order.ts";
import type { CallState } from "./call-state.ts";
import type { InputSource, OutsideCall } from "./input-source.ts";

/**
 * The `outside` functions of an episode's world and user. Checks each call and passes it to the `InputSource`, which
 * makes it or answers it from the recording.
 */
export class OutsideCalls {
  readonly #source: InputSource;
  readonly #state: CallState;
  readonly #order: AnswerOrder;
  readonly #redactor: Pick<Redactor, "without">;
  readonly #isPlaying: () => boolean;

  /** @param parts - `isPlaying` returns true while recorded inputs are left. */
  constructor(parts: {
    readonly source: InputSource;
    readonly state: CallState;
    readonly order: AnswerOrder;
    readonly redactor: Pick<Redactor, "without">;
    readonly isPlaying: () => boolean;
  }) {
    this.#source = parts.source;
    this.#state = parts.state;
    this.#order = parts.order;
    this.#redactor = parts.redactor;
    this.#isPlaying = parts.isPlaying;
  }

  /** The world's `outside`. */
  readonly world: Outside = (what, work) => this.#call(what, work, { by: "environment" });

  /** The user's `outside`. */
  readonly user: Outside = (what, work) => this.#call(what, work, { by: "user" });

  /**
   * Returns an `outside` for a party that is not repeatable. After one of its calls was answered from the recording,
   * the episode cannot continue live, for the reason `bound`.
   */
  bound(bound: string): Outside {
    return (what, work) => this.#call(what, work, { by: "environment", bound });
  }

  #call<Result>(
    called: string,
    work: () => Result | Promise<Result>,
    { by, bound }: { readonly by: Party; readonly bound?: string },
  ): Promise<Result> {
    if (!this.#state.allowsOutside) {
      const what = typeof called === "string" ? this.#clean(called) : describe(called);
      const refused = Promise.reject<Result>(this.#state.refuseStray(what, by));
      // The next call to the world reports this error, so the caller need not await it.
      refused.catch(() => {});
      return refused;
    }
    const isPlaying = this.#isPlaying();
    const made = this.#start(called, work, bound);
    // A recorded failure comes sooner than the original one, maybe before the caller awaits it.
    if (isPlaying) made.catch(() => {});
    return made;
  }

  #start<Result>(
    called: string,
    work: () => Result | Promise<Result>,
    bound: string | undefined,
  ): Promise<Result> {
    let call: OutsideCall<Result>;
    try {
      requireCall(called, work);
      const what = this.#clean(called);
      this.#requireNoOther(what);
      call = { index: this.#state.startedCount++, what, work, bound };
    } catch (misuse) {
      return Promise.reject(misuse);
    }
    this.#order.recheck();
    return this.#source.call(call);
  }

  /**
   * Refuses a nested call.
   *
   * @throws OutsideMisuse if the call is made while the work of another call starts.
   */
  #requireNoOther(what: string): void {
    const { starting } = this.#state;
    if (starting === undefined) return;
    throw new OutsideMisuse(
      `Cannot call ${what} through outside within the work of ${starting}, which is recorded with what ` +
        "it brings, expected it to be called as it is, or before",
    );
  }

  #clean(text: string): string {
    return this.#redactor.without(text);
  }
}

/**
 * Checks the arguments of a call from JavaScript.
 *
 * @throws OutsideMisuse if a call from JavaScript has no name or no function.
 */
function requireCall(what: unknown, work: unknown): void {
  if (typeof what === "string" && typeof work === "function") return;
  const given = typeof what === "string" ? `${what} with ${describe(work)}` : describe(what);
  throw new OutsideMisuse(
    `Cannot call ${given} through outside, expected a text that names the call, and a function that makes it`,
  );
}
