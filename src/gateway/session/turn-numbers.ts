/**
 * Numbers a session's turns in the journal. A number equals the turn's index in the tree, unless an
 * earlier turn could not be restored. Numbers are never reused.
 */
export class TurnNumbers {
  /** Turn numbers by index in the tree. */
  readonly #numbers: number[] = [];
  readonly #indexes = new Map<number, number>();
  #next = 0;

  /** Marks a number as used, even if its turn cannot be restored. */
  reserve(number: number): void {
    this.#next = Math.max(this.#next, number + 1);
  }

  /** Assigns a number to the next index of the tree. */
  assign(number: number): void {
    this.#indexes.set(number, this.#numbers.length);
    this.#numbers.push(number);
  }

  /** Returns the turn's index in the tree, or `undefined` if the turn was not restored. */
  indexOf(number: number): number | undefined {
    return this.#indexes.get(number);
  }

  /** Returns the number of the turn at an index, including indexes that are added later. */
  numberOf(index: number): number {
    return this.#numbers[index] ?? this.#next + index - this.#numbers.length;
  }
}
