/** A list of numbers that grows. */
export class NumberList {
  #values: Float64Array;
  #length = 0;

  constructor(capacity = 1024) {
    this.#values = new Float64Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const larger = new Float64Array(2 * this.#length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** Returns the numbers as a view. Later numbers are not part of it. */
  values(): Float64Array {
    return this.#values.subarray(0, this.#length);
  }
}
