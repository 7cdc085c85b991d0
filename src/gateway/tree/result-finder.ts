import type { ClientAssistant, ClientMessage } from "../conversation.ts";
import { OpenCalls } from "./open-calls.ts";

/** The position of a call in a conversation. */
export interface CallPlace {
  /** Index of the message that makes the call. */
  readonly at: number;
  /** Index of the call in that message. */
  readonly place: number;
}

/** The call that a result answers. */
interface FoundCall extends CallPlace {
  /**
   * The call's place as text, such as `0`, or `0 of 2 ago`: two turns before the newest one. It does not depend on the
   * number of earlier messages.
   */
  readonly name: string;
  /** False for a second result of the same call. */
  readonly isFirst: boolean;
}

interface NumberedPlace extends CallPlace {
  /** Number of its turn, counted from the first message of interest. Earlier turns are negative. */
  readonly turn: number;
}

/** Finds the calls that the results of a conversation answer. */
export class ResultFinder {
  readonly #messages: readonly ClientMessage[];
  readonly #start: number;
  readonly #calls = new OpenCalls<NumberedPlace>();
  /** The calls before the first message of interest, computed on demand. */
  #earlier: OpenCalls<NumberedPlace> | undefined;
  #turn = -1;

  /** @param start - Index of the first message of interest. */
  constructor(messages: readonly ClientMessage[], start: number) {
    this.#messages = messages;
    this.#start = start;
  }

  addTurn(turn: ClientAssistant, at: number): void {
    this.#turn += 1;
    this.#calls.addTurn(placesOf(turn, { at, turn: this.#turn }));
  }

  /** Finds the call with the id of the next result. */
  find(id: string): FoundCall | undefined {
    const found = this.#calls.answer(id) ?? this.#callsBefore().answer(id);
    if (found === undefined) return undefined;
    const { call, isFirst } = found;
    const { at, place, turn } = call;
    const distance = this.#turn - turn;
    return {
      at,
      place,
      isFirst,
      name: distance === 0 ? `${place}` : `${place} of ${distance} ago`,
    };
  }

  /** The newest turn's calls without a result, in order. */
  get open(): readonly CallPlace[] {
    return this.#calls.open;
  }

  /** True if a call of the newest turn has no result. */
  get hasOpen(): boolean {
    return this.#calls.hasOpen;
  }

  #callsBefore(): OpenCalls<NumberedPlace> {
    if (this.#earlier !== undefined) return this.#earlier;
    const earlier = new OpenCalls<NumberedPlace>();
    const before = this.#messages.slice(0, this.#start);
    let turn = -before.filter(({ role }) => role === "assistant").length;
    for (const [at, message] of before.entries()) {
      if (message.role === "tool") earlier.answer(message.callId);
      if (message.role === "assistant") earlier.addTurn(placesOf(message, { at, turn: turn++ }));
    }
    this.#earlier = earlier;
    return earlier;
  }
}

function placesOf({ calls }: ClientAssistant, of: { readonly at: number; readonly turn: number }) {
  return calls.map(({ id }, place) => ({ id, call: { ...of, place } }));
}
