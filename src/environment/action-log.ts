import type { PlainJson, PyDict } from "../../packages/python-values/src/value.ts";
import { toWritableArguments } from "./written-arguments.ts";

/** A call that an episode made. */
export interface MadeCall {
  readonly name: string;
  /** The arguments. Numbers that JSON lacks (such as `NaN`) or JavaScript cannot represent are texts here. */
  readonly arguments: Readonly<Record<string, PlainJson>>;
  /** True if the call was a mistake and changed nothing. */
  readonly isError: boolean;
}

/** The agent's actions in one turn, in order. */
export interface MadeTurn {
  readonly said: readonly string[];
  readonly calls: readonly MadeCall[];
}

/** The actions of an agent in an episode, for its score. */
export interface PlayedOutcome {
  /** The agent's messages to the user, in order. */
  readonly said: readonly string[];
  /** The last message to the user. Empty if there was no message. */
  readonly answer: string;
  /** Every call, in order. */
  readonly calls: readonly MadeCall[];
  /**
   * The agent's turns in order, each with its actions. A turn that contains only malformed calls has no actions. Absent
   * if the agent keeps its conversations itself.
   */
  readonly turns?: readonly MadeTurn[];
  /** True if the episode finished, rather than reaching a limit. */
  readonly isDone: boolean;
}

/** The actions of an agent in one episode, as they happen. */
export class ActionLog {
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
