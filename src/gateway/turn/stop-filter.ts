import { holdBackLength } from "../../../packages/tool-parsers/src/hold-back.ts";

/** Cuts streamed text at the first of several stop texts. */
export class StopFilter {
  readonly #stops: readonly string[];
  #held = "";
  #found: string | undefined;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** The stop text that cut the stream, if any. */
  get found(): string | undefined {
    return this.#found;
  }

  /**
   * Adds text.
   *
   * @returns the text that can be released, because no stop text can start in it.
   */
  push(text: string): string {
    if (this.#found !== undefined) return "";
    const pending = this.#held + text;
    const places = this.#stops.flatMap((stop) => {
      const at = pending.indexOf(stop);
      return at === -1 ? [] : [{ stop, at }];
    });
    const [first] = places.toSorted((left, right) => left.at - right.at);
    if (first !== undefined) {
      this.#found = first.stop;
      this.#held = "";
      return pending.slice(0, first.at);
    }
    const kept = this.#stops.length === 0 ? 0 : holdBackLength(pending, this.#stops);
    this.#held = pending.slice(pending.length - kept);
    return pending.slice(0, pending.length - kept);
  }

  /** Ends the text. Returns the part that was kept back. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }
}
