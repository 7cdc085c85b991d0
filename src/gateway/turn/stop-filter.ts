import { holdBackLength } from "../../parser/hold-back.ts";

/** Cuts a text that arrives in pieces where the first of several texts begins. */
export class StopFilter {
  readonly #stops: readonly string[];
  #held = "";
  #found: string | undefined;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** The text at which it was cut; `undefined` where it was not. */
  get found(): string | undefined {
    return this.#found;
  }

  /** What of the text can be released, because no stop can begin in it. */
  push(text: string): string {
    if (this.#found !== undefined) return "";
    const whole = this.#held + text;
    const places = this.#stops.flatMap((stop) => {
      const at = whole.indexOf(stop);
      return at === -1 ? [] : [{ stop, at }];
    });
    const [first] = places.toSorted((left, right) => left.at - right.at);
    if (first !== undefined) {
      this.#found = first.stop;
      this.#held = "";
      return whole.slice(0, first.at);
    }
    const kept = this.#stops.length === 0 ? 0 : holdBackLength(whole, this.#stops);
    this.#held = whole.slice(whole.length - kept);
    return whole.slice(0, whole.length - kept);
  }

  /** Releases what was held back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}
