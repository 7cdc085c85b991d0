import { indexesOf } from "../text/indexes-of.ts";

/**
 * Decides if a position lies in a section: after an opening marker, without a closing marker between the marker and the
 * position. Positions must be given in ascending order.
 */
export class SectionTracker {
  readonly #openings: readonly number[];
  readonly #closings: readonly number[];
  #openingIndex = 0;
  #closingIndex = 0;

  constructor(text: string, open: string, close: string) {
    this.#openings = indexesOf(text, open);
    this.#closings = indexesOf(text, close);
  }

  isInside(index: number): boolean {
    while ((this.#openings[this.#openingIndex] ?? Infinity) < index) this.#openingIndex += 1;
    while ((this.#closings[this.#closingIndex] ?? Infinity) < index) this.#closingIndex += 1;
    const opening = this.#openings[this.#openingIndex - 1] ?? -1;
    return opening !== -1 && opening > (this.#closings[this.#closingIndex - 1] ?? -1);
  }
}
