import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { MadeCall, MadeTurn, PlayedEpisode } from "./defined-world.ts";
import { toWritableArguments } from "./written-arguments.ts";

/** The part of a played episode that its actions make up. */
export type PlayedOutcome = Pick<
  PlayedEpisode<unknown>,
  "said" | "answer" | "calls" | "turns" | "isDone"
>;

/** The agent's actions in one episode. */
export class PlayedActions {
  readonly #said: string[] = [];
  readonly #calls: MadeCall[] = [];
  /** All calls and texts, in order. */
  readonly #actions: (MadeCall | string)[] = [];

  get said(): readonly string[] {
    return this.#said;
  }

  say(content: string): void {
    this.#said.push(content);
    this.#actions.push(content);
  }

  call(made: { readonly name: string; readonly given: PyDict; readonly isError: boolean }): void {
    const { name, given, isError } = made;
    const call = { name, arguments: toWritableArguments(given), isError };
    this.#calls.push(call);
    this.#actions.push(call);
  }

  /**
   * Returns the actions for a score.
   * @param actionCounts - The number of actions of each turn, if the agent has turns.
   */
  outcome(actionCounts: readonly number[] | undefined, isDone: boolean): PlayedOutcome {
    return {
      said: this.#said,
      answer: this.#said.at(-1) ?? "",
      calls: this.#calls,
      ...(actionCounts !== undefined && { turns: this.#turnsOf(actionCounts) }),
      isDone,
    };
  }

  /** Divides the actions into those of each turn. */
  #turnsOf(counts: readonly number[]): readonly MadeTurn[] {
    let from = 0;
    return counts.map((count) => {
      const own = this.#actions.slice(from, from + count);
      from += count;
      return {
        said: own.filter((action) => typeof action === "string"),
        calls: own.filter((action) => typeof action !== "string"),
      };
    });
  }
}
