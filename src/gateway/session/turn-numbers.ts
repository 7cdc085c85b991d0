/**
 * The numbers of a session's turns in the journal. They are the places of the turns in the session's tree, unless
 * a turn before them could not be read any more: a number is never given twice.
 */
export class TurnNumbers {
  /** By place. */
  readonly #numbers: number[] = [];
  readonly #places = new Map<number, number>();
  #next = 0;

  /** Takes note of a number that was given, whatever becomes of its turn. */
  note(number: number): void {
    this.#next = Math.max(this.#next, number + 1);
  }

  /** Says that the turn of a number stands in the next place of the tree. */
  enter(number: number): void {
    this.#places.set(number, this.#numbers.length);
    this.#numbers.push(number);
  }

  /** Where the turn stands in the tree; `undefined` where it does not. */
  placeOf(number: number): number | undefined {
    return this.#places.get(number);
  }

  /** The number of the turn in a place, one that is entered later included. */
  numberOf(place: number): number {
    return this.#numbers[place] ?? this.#next + place - this.#numbers.length;
  }
}
